import * as z from 'zod';

/** Bands that are described. A raster may have more. */
export const maxDescribedBands = 100;
const maxPositions = 2_000;

const text = (most: number) =>
  z
    .string()
    .regex(/^\P{Cc}*$/u)
    .max(most);

/** Longitude, latitude. */
const position = z
  .array(z.number().min(-180).max(180))
  .length(2)
  .refine(([, latitude = 0]) => Math.abs(latitude) <= 90);
const ring = z
  .array(position)
  .min(4)
  .max(maxPositions)
  .refine((positions) => String(positions[0]) === String(positions.at(-1)));
/** GeoJSON, in degrees. */
const footprint = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('Polygon'), coordinates: z.array(ring).length(1) }),
  z.strictObject({ type: z.literal('MultiPolygon'), coordinates: z.array(z.array(ring).length(1)).min(1).max(100) }),
]);

/** Null if no pixel of the band has a value. */
const statistics = z.strictObject({ minimum: z.number(), maximum: z.number(), mean: z.number(), stddev: z.number() });

const band = z.strictObject({
  name: text(200),
  /** In the words of STAC's raster extension. */
  dataType: z.enum(['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'float32', 'float64', 'other']), // oxfmt-ignore
  /** Null if no number marks gaps. */
  nodata: z.union([z.number(), z.literal('nan')]).nullable(),
  unit: text(40).nullable(),
  /** Null for stored numbers that are the values. Statistics and nodata are stored numbers. */
  scale: z.strictObject({ scale: z.number(), offset: z.number() }).nullable().optional(),
  statistics: statistics.nullable(),
});

/** Facts about one output file, as its step's process read them from the file. */
export const outputDescription = z.strictObject({
  fileName: text(255),
  footprint: footprint.nullable(),
  raster: z
    .strictObject({
      /** Null if the reference system has no code. */
      epsg: z.int().positive().nullable(),
      /** Rows, columns. */
      shape: z.tuple([z.int().positive(), z.int().positive()]),
      /** Coefficients of the affine transformation, in the order of STAC's projection extension. Null without one. */
      transform: z.array(z.number()).length(6).nullable(),
      bands: z.array(band).max(maxDescribedBands),
    })
    .nullable(),
});
export type OutputDescription = z.output<typeof outputDescription>;

/** Reads what a step's process answered. Leaves out a description of another shape, because a foreign file may have taken the process over. */
export function readDescriptions(answer: unknown): OutputDescription[] {
  if (!Array.isArray(answer)) return [];
  return answer.slice(0, maxDescribedBands).flatMap((entry) => outputDescription.safeParse(entry).data ?? []);
}
