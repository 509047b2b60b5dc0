import { sourceTypes, type CatalogItem, type SourceType } from '../../contract/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { bandParameters } from './input-facts.ts';

/** Source types whose data is pixels. */
const rasters: readonly SourceType[] = [
  'MULTISPECTRAL',
  'HYPERSPECTRAL',
  'SAR',
  'PANCHROMATIC',
  'HEIGHTMAP',
  'THERMAL',
  'COMPLEX',
  'UNKNOWN',
  'NETCDF',
  'LAND_SUBSIDENCE',
  'IMAGE',
];

/** Says why an item cannot be the step's input, whatever its parameters; null if it can. What an item does not say does not count against it. */
export function whyNot(step: AnyStep, { sourceType, bands }: Pick<CatalogItem, 'sourceType' | 'bands'>): string | null {
  return wrongType(step, sourceType) ?? tooFewBands(step, bands?.length);
}

function tooFewBands(step: AnyStep, count: number | undefined): string | null {
  // A step that takes several items may find its bands among them.
  if (count === undefined || step.input.mostItems !== 1) return null;
  const needed = bandParameters(step).length;
  return count < needed ? `has ${count} of the ${needed} bands that ${step.title} takes` : null;
}

function wrongType(step: AnyStep, sourceType: string | undefined): string | null {
  const known = sourceTypes.find((one) => one === sourceType);
  const wanted = step.input.sourceTypes ?? rasters;
  if (known === undefined || wanted.includes(known)) return null;
  const words = (type: string) => type.toLowerCase().replaceAll('_', ' ');
  return `is ${words(known)}; ${step.title} takes ${wanted
    .filter((type) => type !== 'UNKNOWN')
    .map(words)
    .join(', ')}`;
}
