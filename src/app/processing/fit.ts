import { sourceTypes, type CatalogItem, type SourceType } from '../../contract/index.ts';
import type { AnyStep } from '../../steps/step.ts';

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
export function whyNot(step: AnyStep, { sourceType }: Pick<CatalogItem, 'sourceType'>): string | null {
  const known = sourceTypes.find((one) => one === sourceType);
  const wanted = step.input.sourceTypes ?? rasters;
  if (known === undefined || wanted.includes(known)) return null;
  const words = (type: string) => type.toLowerCase().replaceAll('_', ' ');
  return `is ${words(known)}; ${step.title} takes ${wanted
    .filter((type) => type !== 'UNKNOWN')
    .map(words)
    .join(', ')}`;
}
