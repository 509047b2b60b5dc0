/** Messages about containers between a step's child and its host. */
import * as z from 'zod';

const plainName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);

/**
 * Request from a step's child to the engine. A child may send anything, so this schema checks it. The program runs in
 * the declared image.
 */
export const containerQuestion = z.strictObject({
  type: z.literal('run-container'),
  argv: z.array(z.string().max(100_000)).min(1).max(1_000),
  /** Texts for the container's work folder, by name. */
  files: z.record(plainName, z.string().max(10_000_000)),
  /** Files of the child's own folder that the container reads. */
  gives: z.array(plainName).max(100),
  /** Position of the step's progress bar when the program ends. */
  upTo: z.number().min(0).max(1),
});
export type ContainerQuestion = z.output<typeof containerQuestion>;

export const containerAnswer = z.object({
  /** By which the program ended; null where a signal ended it. */
  exitCode: z.int().nullable(),
  /** The end of what it wrote to stderr. */
  errors: z.string(),
  /** Folder with `work` and `output` as the container left them. */
  folder: z.string(),
});
export type ContainerAnswer = z.output<typeof containerAnswer>;
