/** Only for child processes. Converts the values of a file to the numbers that a model was trained on. */
import { KitError } from '../../contract/kit-error.ts';
import type { BandReader } from '../band-reader.ts';
import type { Model } from './model-file.ts';

export type ModelValues = NonNullable<Model['values']>[number];

const sampleSide = 256;
/** Share of the samples that may lie outside the range at each end, such as fill and saturated pixels. */
const outliers = 0.02;

/** Finds the first range of the model that contains the values of the bands. Returns null if the model has no ranges. Throws `KitError` with code `values_out_of_range`. */
export function valuesOf({ id, values }: Model, readers: readonly BandReader[]): ModelValues | null {
  if (!values) return null;
  const sample = readers.flatMap(sampleOf).sort((a, b) => a - b);
  const [low, high] = [outliers, 1 - outliers].map((share) => sample[Math.round((sample.length - 1) * share)] ?? NaN);
  const found = values.find(({ from, to }) => sample.length === 0 || (low! >= from && high! <= to));
  if (found) return found;
  const wanted = values.map(({ from, to, name }) => `${from} to ${to} (${name})`).join(', ');
  throw new KitError(
    'values_out_of_range',
    `the values of the bands are between ${low!} and ${high!}, but model ${id} accepts ${wanted}`,
    { status: 422 },
  );
}

function sampleOf(reader: BandReader): number[] {
  const { x: width, y: height } = reader.band.size;
  const size = [Math.min(sampleSide, width), Math.min(sampleSide, height)] as const;
  const samples = new Float64Array(size[0] * size[1]);
  reader.read([0, 0, width, height], samples, { size });
  return Array.from(samples).filter((value) => !Number.isNaN(value));
}
