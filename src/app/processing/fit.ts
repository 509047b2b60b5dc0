import { sourceTypes, type CatalogItem, type SourceType } from '../../contract/index.ts';
import { mainInput, type AnyStep, type InputDeclaration } from '../../steps/step.ts';
import { factsOfItems, requireBands } from './input-facts.ts';
import { checkParameters, InvalidParametersError, type StepParameters } from './step-parameters.ts';

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

/** Says why an item cannot be the main input of the step with the parameters' defaults; null if it can, or if the item does not say. */
export function unfitReason(step: AnyStep, item: CatalogItem): string | null {
  const [name, declared] = mainInput(step) ?? [];
  if (name === undefined || declared === undefined) return `${step.title} takes no raster`;
  const reason = incompatibilityReason(step, declared, item);
  const defaults = defaultsOf(step);
  if (reason !== null || defaults === null) return reason;
  try {
    requireBands(step, defaults, new Map([[name, factsOfItems([item])]]));
    return null;
  } catch (error) {
    if (!(error instanceof InvalidParametersError)) throw error;
    return error.details.map(({ message }) => message).join('; ');
  }
}

/** Null for a step with a parameter that has no default. */
function defaultsOf(step: AnyStep): StepParameters | null {
  try {
    return checkParameters(step, {});
  } catch (error) {
    if (error instanceof InvalidParametersError) return null;
    throw error;
  }
}
