import * as z from 'zod';
import { inferenceTypes } from '../../contract/index.ts';

const numbers = z.array(z.number());
const byte = z.int().min(0).max(255);

/** `model.json`, beside `model.onnx` in the model's folder. */
export const modelFile = z
  .object({
    name: z.string().min(1),
    version: z.string().min(1),
    /** The sandbox has no models of the type DETECTION: the interface does not show the form of their results. */
    type: z.enum(inferenceTypes).exclude(['DETECTION']),
    /** One that is not is in no list, and runs nothing (spec 4.7: active and registered models). */
    active: z.boolean().default(true),
    /** By number of the class, from 0. */
    labels: z.array(z.string().min(1)).min(1).max(255),
    /** Red, green and blue of each label, 0 to 255. Default: by words such as `water` and `forest`; a label such as `none` is not drawn. */
    colors: z.array(z.tuple([byte, byte, byte])).optional(),
    /** Names by which the file's bands are found, in the order of the model's input. */
    bands: z.array(z.string().min(1)).min(1).max(64),
    /** Each band becomes (value - mean) / std. Default: as it is. */
    normalisation: z.object({ mean: numbers, std: numbers }).optional(),
    /** Ranges of values that the model accepts, in order. The first range that contains a file's values applies: its factor and offset convert them to the numbers of the training. Default: the model accepts all stored numbers unchanged. */
    values: z
      .array(
        z
          .object({
            name: z.string().min(1),
            from: z.number(),
            to: z.number(),
            factor: z.number().default(1),
            offset: z.number().default(0),
          })
          .refine(({ from, to }) => from < to, { path: ['to'], error: 'must be above from' }),
      )
      .min(1)
      .optional(),
    /** Side of the model's input in pixels. */
    tileSize: z.int().min(8).max(4096).default(256),
    /** Pixels at each edge of a tile that its neighbours decide. */
    overlap: z.int().min(0).max(512).default(0),
  })
  .refine(
    ({ bands, normalisation }) =>
      !normalisation || (normalisation.mean.length === bands.length && normalisation.std.length === bands.length),
    {
      path: ['normalisation'],
      error: 'must have one mean and one std for each band',
    },
  )
  .refine(({ normalisation }) => !normalisation || normalisation.std.every((deviation) => deviation > 0), {
    path: ['normalisation', 'std'],
    error: 'must be above 0',
  })
  .refine(({ labels, colors }) => colors === undefined || colors.length === labels.length, {
    path: ['colors'],
    error: 'must have one colour for each label',
  })
  .refine(({ tileSize, overlap }) => overlap * 2 < tileSize, {
    path: ['overlap'],
    error: 'must be less than half of tileSize',
  });

export interface Model extends z.output<typeof modelFile> {
  /** Name of its folder. */
  readonly id: string;
  readonly onnxPath: string;
}
