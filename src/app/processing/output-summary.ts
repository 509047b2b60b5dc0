import * as z from 'zod';

const mostPictureBytes = 2 * 1024 ** 2;
const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Of the small grid of values. */
export const valuesSide = 96;

const place = z.tuple([z.number().min(-540).max(540), z.number().min(-90).max(90)]);

const byte = z.int().min(0).max(255);

/** Of the valid values of a band, from at most 1,024 x 1,024 of them. */
const bandSummary = z.strictObject({
  name: z.string().max(200),
  /** What its values are counted in; null where the step does not say. */
  unit: z.string().max(40).nullable().default(null),
  min: z.number(),
  mean: z.number(),
  max: z.number(),
  stdDev: z.number().min(0),
  /** Of all pixels, 0 to 1. */
  validShare: z.number().min(0).max(1),
  /** How many of the values lie in each of as many equal parts between `low` and `high`; those outside in none. */
  histogram: z.strictObject({ low: z.number(), high: z.number(), counts: z.array(z.int().min(0)).min(1).max(64) }),
  /** Of the band that the picture shows: colours of equal steps from `low` to `high`, red, green and blue to 255. Null for the others, and where three are drawn as red, green and blue. */
  colors: z
    .array(z.tuple([byte, byte, byte]))
    .min(2)
    .max(32)
    .nullable(),
  /** Where the band holds classes: those that occur, with their share of all valid pixels. */
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

/** What stays of an output when its file is gone: what people look at. */
export const outputSummary = z.strictObject({
  width: z.int().positive(),
  height: z.int().positive(),
  /** Longitude and latitude of the corners of its picture, clockwise from the upper left; null where it says no place. */
  corners: z.tuple([place, place, place, place]).nullable(),
  /** Of the band that the picture shows, for the value under the pointer: rows from the upper left, null where there is none. Null where three bands are drawn. */
  values: z
    .strictObject({
      width: z.int().positive().max(valuesSide),
      height: z.int().positive().max(valuesSide),
      rows: z.array(z.number().nullable()).max(valuesSide ** 2),
    })
    .refine(({ width, height, rows }) => rows.length === width * height)
    .nullable()
    .default(null),
  /** Those that have a valid value, at most the first sixteen. */
  bands: z.array(bandSummary).max(16),
});
export type OutputSummary = z.infer<typeof outputSummary>;

/** A summary with the picture that it speaks of, a PNG in the step's style, transparent where there is no data. */
export interface RunResult {
  readonly summary: OutputSummary;
  readonly picture: Uint8Array;
}

/** What a step's process says, held to its shape: a foreign file may have taken it over. Null where it is none. */
export function readResult(answer: unknown): RunResult | null {
  const { summary, picture } = (answer ?? {}) as { summary?: unknown; picture?: unknown };
  const read = outputSummary.safeParse(summary);
  if (!read.success || !(picture instanceof Uint8Array) || picture.length > mostPictureBytes) return null;
  return pngSignature.every((byte, i) => picture[i] === byte) ? { summary: read.data, picture } : null;
}
