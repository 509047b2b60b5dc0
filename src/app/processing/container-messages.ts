/** What a step's child and its host say of a container. */
import * as z from 'zod';

const plainName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);

/** What a step's child asks of the engine. A child may ask anything: it is held to this, and what runs is in the declared image. */
export const containerQuestion = z.strictObject({
  type: z.literal('run-container'),
  argv: z.array(z.string().max(100_000)).min(1).max(1_000),
  /** Texts for the container's work folder, by name. */
  files: z.record(plainName, z.string().max(10_000_000)),
  /** Files of the child's own folder that the container reads. */
  gives: z.array(plainName).max(100),
  /** Where the program is done, of the step's bar. */
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
