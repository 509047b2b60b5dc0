import { limits, sourceTypes, type SourceType } from '../../contract/index.ts';
import { boxOf, footprintOfBox } from '../../raster/index.ts';
import {
  inputsOf,
  mainInput,
  outputsOf,
  sourceTypeOfOutput,
  type AnyStep,
  type OutputDeclaration,
} from '../../steps/step.ts';
import type { Provenance, ReadFile } from './provenance.ts';
import { acquisitionOf, declaredUnit, itemsOf } from './facts-of-inputs.ts';
import type { ItemReference } from './run-input.ts';
import type { OutputDescription } from './output-description.ts';

/** Facts of an output for its completion (spec 4.4). */
export interface ResultFacts {
  /** Type of the output; of an `as-input` output, that of its main input. */
  readonly sourceType: SourceType;
  /** Time of the latest input, ISO 8601, unless the step says otherwise. Absent if no input has one. */
  readonly acquisitionDate?: string;
  /** GeoJSON as text: the boxes of the input zones, or of all inputs if no zones have a place. Present only if the output itself has no place. */
  readonly geometry?: string;
  readonly layerProperties?: LayerProperties;
}

/** Properties of the delivered item. */
export interface LayerProperties {
  readonly title: string;
  readonly step: string;
  readonly stepVersion: string;
  readonly operationId: string | null;
  readonly software: Readonly<Record<string, string>>;
  /** Unit of the values: the step's, or else that of all bands of the file. */
  readonly unit?: string;
  /** Items of the platform that the step has read. Absent if the list is too long for a completion. The file's provenance always has it. */
  readonly sourceItems?: readonly ItemReference[];
  /** First and last time of the inputs, ISO 8601, if they differ (STAC, `start_datetime` and `end_datetime`). */
  readonly start_datetime?: string;
  readonly end_datetime?: string;
  /** SHA-256 of the run's provenance, which the file contains. */
  readonly provenance: string;
}

/** Half of the size limit of a completion's properties. */
const maxItemsBytes = limits.filePropertiesBytes / 2;

/** Derives the facts of one output from those of the run's inputs. `fileName` is the output's; `descriptions` say more about it. */
export function resultFacts(
  step: AnyStep,
  { fileName, descriptions = [] }: { readonly fileName: string; readonly descriptions?: readonly OutputDescription[] },
  provenance: Provenance | null,
): ResultFacts {
  const declared = outputsOf(step).find(([, output]) => output.fileName === fileName)?.[1];
  // A zip of several outputs is none of them.
  const isPack = declared === undefined;
  if (provenance === null) return { sourceType: sourceTypeOf(declared, []) };
  const files = provenance.inputs.flatMap((input) => input.files);
  const main = provenance.inputs.find(({ name }) => name === mainInput(step)?.[0])?.files ?? files;
  const { acquired, first, last } = acquisitionOf(step, files);
  const zones = provenance.inputs.filter(({ name }) =>
    inputsOf(step).some(([of, { kind }]) => of === name && kind === 'vector'),
  );
  const zoneBoxes = boxesOf(zones.flatMap((input) => input.files));
  const footprints = descriptions.flatMap(({ footprint }) => footprint ?? []);
  const own = isPack ? footprints.map((footprint) => boxOf(footprint)) : [];
  const isPlaced = hasPlace(declared) && (descriptions.length === 0 || footprints.length > 0);
  const geometry = isPlaced
    ? null
    : outlineOf([own, zoneBoxes, boxesOf(files)].find((boxes) => boxes.length > 0) ?? []);
  const unit = declaredUnit(declared, provenance.parameters) ?? (isPack ? undefined : commonUnit(descriptions));
  const sourceItems = itemsOf(provenance.input);
  const isShort = Buffer.byteLength(JSON.stringify(sourceItems)) <= maxItemsBytes;
  const { id, version } = provenance.step;
  return {
    sourceType: sourceTypeOf(declared, main),
    ...(acquired !== undefined && { acquisitionDate: acquired }),
    ...(geometry !== null && { geometry: JSON.stringify(geometry) }),
    layerProperties: {
      title: step.title,
      step: id,
      stepVersion: version,
      operationId: provenance.operationId,
      software: provenance.software,
      ...(unit !== undefined && { unit }),
      ...(isShort && { sourceItems }),
      ...(first !== undefined && last !== undefined && first !== last && { start_datetime: first, end_datetime: last }),
      provenance: provenance.digest,
    },
  };
}

function sourceTypeOf(declared: OutputDeclaration | undefined, main: readonly ReadFile[]): SourceType {
  if (declared === undefined) return 'UNKNOWN';
  const word = sourceTypeOfOutput(declared);
  if (word !== 'as-input') return word;
  const [type, ...others] = new Set(main.map((file) => file.sourceType));
  return others.length === 0 ? (sourceTypes.find((known) => known === type) ?? 'UNKNOWN') : 'UNKNOWN';
}

/** The unit that all bands have, or none. */
function commonUnit(descriptions: readonly OutputDescription[]): string | undefined {
  const [unit, ...others] = new Set(descriptions.flatMap(({ raster }) => raster?.bands.map((band) => band.unit) ?? []));
  return others.length === 0 ? (unit ?? undefined) : undefined;
}

const hasPlace = (declared: OutputDeclaration | undefined): boolean =>
  declared !== undefined &&
  (declared.kind === undefined ||
    declared.kind === 'raster' ||
    (declared.kind === 'vector' && declared.geometry !== 'None'));

type Box = readonly [number, number, number, number];

/** Each box once: the files of an item share its box. */
const boxesOf = (files: readonly ReadFile[]): Box[] => [
  ...new Map(files.flatMap(({ bbox }) => (bbox ? [[String(bbox), bbox]] : []))).values(),
];

/** Null without boxes, or if their outline has too many positions for a completion. */
function outlineOf(boxes: readonly Box[]): object | null {
  const polygons = boxes
    .map(footprintOfBox)
    .flatMap((outline) => (outline.type === 'Polygon' ? [outline.coordinates] : outline.coordinates));
  if (polygons.length === 0 || polygons.flat(2).length > limits.footprintPositions) return null;
  return polygons.length === 1
    ? { type: 'Polygon', coordinates: polygons[0] }
    : { type: 'MultiPolygon', coordinates: polygons };
}
