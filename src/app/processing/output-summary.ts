import * as z from 'zod';

const maxPictureBytes = 2 * 1024 ** 2;
const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Longest side of the small grid of values. */
export const valuesSide = 96;

const place = z.tuple([z.number().min(-540).max(540), z.number().min(-90).max(90)]);

const byte = z.int().min(0).max(255);

/** Describes the valid values of a band, from at most 1,024 x 1,024 of them. */
const bandSummary = z.strictObject({
  name: z.string().max(200),
  /** Unit of the values. Null if the step does not declare one. */
  unit: z.string().max(40).nullable().default(null),
  min: z.number(),
  mean: z.number(),
  max: z.number(),
  stdDev: z.number().min(0),
  /** Share of all pixels that are valid, 0 to 1. */
  validShare: z.number().min(0).max(1),
  /** Splits `low` to `high` into equal parts, one for each count, and counts the values in each; values outside count nowhere. */
  histogram: z.strictObject({ low: z.number(), high: z.number(), counts: z.array(z.int().min(0)).min(1).max(64) }),
  /** Colours of equal steps from `low` to `high`, red, green and blue to 255, for the band that the picture shows. Null for other bands, and if the picture draws three bands as red, green and blue. */
  colors: z
    .array(z.tuple([byte, byte, byte]))
    .min(2)
    .max(32)
    .nullable(),
  /** If the band holds classes: those that occur, each with its share of all valid pixels. */
  classes: z
    .array(
      z.strictObject({
        value: z.number(),
        name: z.string().max(200),
        color: z.tuple([byte, byte, byte]),
        share: z.number().min(0).max(1),
      }),
    )
    .max(256)
    .nullable()
    .default(null),
});

/** Facts about an output that the app keeps for people after the file is gone. */
export const outputSummary = z.strictObject({
  width: z.int().positive(),
  height: z.int().positive(),
  /** Longitude and latitude of the corners of its picture, clockwise from the upper left; null where it says no place. */
  corners: z.tuple([place, place, place, place]).nullable(),
  /** Values of the band that the picture shows, for the value under the pointer: rows from the upper left, a null entry for no value. Null if the picture draws three bands. */
  values: z
    .strictObject({
      width: z.int().positive().max(valuesSide),
      height: z.int().positive().max(valuesSide),
      rows: z.array(z.number().nullable()).max(valuesSide ** 2),
    })
    .refine(({ width, height, rows }) => rows.length === width * height)
    .nullable()
    .default(null),
  /**
   * Number of features in the output. `bands` then describes their fields, and `width` and `height` are the size of
   * their picture. Null for a raster.
   */
  features: z.int().min(0).nullable().default(null),
  /** The bands that have a valid value, at most the first sixteen. */
  bands: z.array(bandSummary).max(16),
  /** Scale of each input band: the value is `stored * factor + offset`. At most sixteen bands. Empty if the step reads no values. */
  readings: z
    .array(
      z.strictObject({
        band: z.string().max(200),
        factor: z.number(),
        offset: z.number(),
        origin: z.enum(['file', 'item', 'parameter', 'none']),
      }),
    )
    .max(16)
    .default([]),
});
export type OutputSummary = z.infer<typeof outputSummary>;

/** A summary with the picture that it speaks of, a PNG in the step's style, transparent where there is no data. */
export interface RunResult {
  readonly summary: OutputSummary;
  readonly picture: Uint8Array;
}

/** Checks the shape of what a step's process answered, because a foreign file may have taken the process over. Null if it is no result. */
export function readResult(answer: unknown): RunResult | null {
  const { summary, picture }: { summary?: unknown; picture?: unknown } = answer ?? {};
  const read = outputSummary.safeParse(summary);
  if (!read.success || !(picture instanceof Uint8Array) || picture.length > maxPictureBytes) return null;
  return pngSignature.every((byte, i) => picture[i] === byte) ? { summary: read.data, picture } : null;
}
