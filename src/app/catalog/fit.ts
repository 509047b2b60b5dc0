import { sourceTypes, type SourceType } from '../../contract/index.ts';
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

/** Says why an item cannot be the step's input; null if it can. An item that does not state its source type is accepted. */
export function whyNot(step: AnyStep, sourceType: string | undefined): string | null {
  const known = sourceTypes.find((one) => one === sourceType);
  const wanted = step.input.sourceTypes ?? rasters;
  if (known === undefined || wanted.includes(known)) return null;
  const words = (type: string) => type.toLowerCase().replaceAll('_', ' ');
  return `is ${words(known)}; ${step.title} takes ${wanted
    .filter((type) => type !== 'UNKNOWN')
    .map(words)
    .join(', ')}`;
}
