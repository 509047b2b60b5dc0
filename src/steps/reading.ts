import type { Reading } from '../raster/band-reader.ts';
import { z } from './step.ts';

const number = String.raw`-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`;
const factorAndOffset = new RegExp(`^(${number})(?:\\s*,\\s*(${number}))?$`);

/** `file` is the name of `physical` before release 1.1.0. */
const words: ReadonlySet<string> = new Set(['physical', 'stored', 'file']);

/** Parameters `scaling` and `nodata` of every step that computes with pixel values. */
export const readingParameters = {
  scaling: z
    .string()
    .max(60)
    .refine(
      (text) => words.has(text) || Number(factorAndOffset.exec(text)?.[1] ?? 0) !== 0,
      'must be physical, stored, or a factor and an offset such as 0.0001,-0.1',
    )
    .default('physical')
    .meta({
      title: 'Values',
      description:
        'physical: apply the scale and offset of the file, or else of its catalog item. stored: use the stored numbers. Or enter a factor and an offset, such as 0.0001,-0.1.',
    }),
  nodata: z.number().min(-1e300).max(1e300).optional().meta({
    title: 'No data',
    description: 'The stored number that marks no data. Default: the value that the file declares.',
  }),
};

/** Parameters that all pixel steps have: scaling and nodata of the input. */
export interface ReadingParameters {
  readonly scaling: string;
  readonly nodata?: number | undefined;
}

/** Converts the parameters to reader options. */
export function readingOf({ scaling, nodata }: ReadingParameters): Reading {
  const [, factor, offset = '0'] = factorAndOffset.exec(scaling) ?? [];
  const word = scaling === 'stored' ? 'stored' : 'physical';
  const given = factor === undefined ? word : { factor: Number(factor), offset: Number(offset) };
  return { scaling: given, ...(nodata !== undefined && { nodata }) };
}
