import { sourceTypes, type CatalogItem, type SourceType } from '../../contract/index.ts';
import type { AnyStep, InputDeclaration } from '../../steps/step.ts';

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

/** Source types whose data is features. */
const vectors: readonly SourceType[] = [
  'POINT',
  'LINESTRING',
  'POLYGON',
  'GEOMETRYCOLLECTION',
  'ANNOTATION',
  'UNKNOWN',
];

/** Says why an item cannot be this input of the step, whatever its parameters; null if it can. What an item does not say does not count against it. */
export function incompatibilityReason(
  step: AnyStep,
  declared: InputDeclaration,
  { sourceType }: Pick<CatalogItem, 'sourceType'>,
): string | null {
  const known = sourceTypes.find((knownType) => knownType === sourceType);
  const wanted = declared.sourceTypes ?? (declared.kind === 'vector' ? vectors : rasters);
  if (known === undefined || wanted.includes(known)) return null;
  const words = (type: string) => type.toLowerCase().replaceAll('_', ' ');
  return `is ${words(known)}; ${step.title} takes ${wanted
    .filter((type) => type !== 'UNKNOWN')
    .map(words)
    .join(', ')}`;
}
