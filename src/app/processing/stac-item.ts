import { getItem, stacVersion } from '../../contract/index.ts';
import { boxOf, type Footprint } from '../../raster/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { nameOfSource } from './delivered-name.ts';
import type { OutputDescription } from './output-description.ts';
import type { Provenance } from './provenance.ts';
import { acquisitionOf, itemsOf } from './facts-of-inputs.ts';
import { resultFacts } from './result-facts.ts';
import type { RunOutput } from './take-outputs.ts';

const extensions = {
  projection: 'https://stac-extensions.github.io/projection/v1.1.0/schema.json',
  raster: 'https://stac-extensions.github.io/raster/v1.1.0/schema.json',
  processing: 'https://stac-extensions.github.io/processing/v1.1.0/schema.json',
  file: 'https://stac-extensions.github.io/file/v2.1.0/schema.json',
} as const;

const mediaTypes: Readonly<Record<string, string>> = {
  tif: 'image/tiff; application=geotiff; profile=cloud-optimized',
  tiff: 'image/tiff; application=geotiff',
  gpkg: 'application/geopackage+sqlite3',
  geojson: 'application/geo+json',
  fgb: 'application/vnd.flatgeobuf',
  csv: 'text/csv',
  json: 'application/json',
  zip: 'application/zip',
};

/** SHA-256 as a multihash (STAC's file extension): its code and its length in bytes stand before it. */
const multihash = (sha256: string) => `1220${sha256}`;

export interface StacItemOptions {
  /** Name of the output in the step's declaration. */
  readonly outputName: string;
  /** The file's address, relative to the item's. */
  readonly href: string;
  /** Identifier of the item. */
  readonly id: string;
  /** Time in ISO 8601 for an output without an acquisition time. */
  readonly madeAt: string;
  /** Address before the paths of the platform. Empty for paths alone. */
  readonly platformUrl: string;
}

/** STAC item (version 1.0.0) of one output: its place, bands, software, sources and checksum. */
export function stacItem(
  step: AnyStep,
  output: Pick<RunOutput, 'sizeBytes' | 'sha256' | 'descriptions'>,
  provenance: Provenance,
  { outputName, href, id, madeAt, platformUrl }: StacItemOptions,
): object {
  const descriptions = output.descriptions ?? [];
  const facts = resultFacts(step, { fileName: outputName, descriptions }, provenance);
  const files = provenance.inputs.flatMap((input) => input.files);
  const { acquired, first, last } = acquisitionOf(step, files);
  const items = itemsOf(provenance.input);
  const described = descriptions.find(({ fileName }) => fileName === outputName);
  const footprint = described?.footprint ?? (facts.geometry === undefined ? null : (JSON.parse(facts.geometry) as Footprint)); // oxfmt-ignore
  const source = nameOfSource(provenance.input);
  return {
    type: 'Feature',
    stac_version: stacVersion,
    stac_extensions: [
      extensions.processing,
      extensions.file,
      ...(described?.raster ? [extensions.projection, extensions.raster] : []),
    ],
    id,
    geometry: footprint,
    ...(footprint && { bbox: boxOf(footprint) }),
    properties: {
      datetime: acquired ?? madeAt,
      ...(first !== undefined && last !== undefined && first !== last && { start_datetime: first, end_datetime: last }),
      title: source === '' ? step.title : `${step.title}, ${source}`,
      description: step.description,
      source_type: facts.sourceType,
      'processing:software': provenance.software,
      'processing:lineage': lineageOf(step, provenance),
      ...(described?.raster && projectionOf(described.raster)),
      ...(facts.layerProperties?.unit !== undefined && { unit: facts.layerProperties.unit }),
    },
    links: items.map((item) => ({
      rel: 'derived_from',
      href: `${platformUrl}${getItem.encode(item).path}`,
      type: 'application/geo+json',
      title: item.itemId,
    })),
    assets: {
      data: {
        href,
        title: outputName,
        type: mediaTypes[outputName.split('.').at(-1)?.toLowerCase() ?? ''] ?? 'application/octet-stream',
        roles: ['data'],
        'file:size': output.sizeBytes,
        'file:checksum': multihash(output.sha256),
        ...(described?.raster && { 'raster:bands': described.raster.bands.map(bandOf) }),
      },
    },
  };
}

function projectionOf({ epsg, shape, transform }: NonNullable<OutputDescription['raster']>): object {
  return { 'proj:epsg': epsg, 'proj:shape': shape, ...(transform && { 'proj:transform': transform }) };
}

function bandOf({
  name,
  dataType,
  nodata,
  unit,
  scale,
  statistics,
}: NonNullable<OutputDescription['raster']>['bands'][number]) {
  return {
    name,
    data_type: dataType,
    ...(nodata !== null && { nodata }),
    ...(unit !== null && { unit }),
    ...scale,
    ...(statistics && { statistics }),
  };
}

/** One sentence: the step, its version, its inputs and its parameters. */
function lineageOf(step: AnyStep, { step: { id, version }, parameters, input }: Provenance): string {
  const items = itemsOf(input);
  const of = items.length > 5 ? `${items.length} items` : items.map(({ collectionId, itemId }) => `${collectionId}/${itemId}`).join(', '); // oxfmt-ignore
  const given = Object.entries(parameters).map(([name, value]) => `${name} ${JSON.stringify(value).slice(0, 100)}`);
  return `${step.title} (${id} ${version}) of ${of || nameOfSource(input)}${given.length > 0 ? `, with ${given.join(', ')}` : ''}.`.slice(0, 2_000); // oxfmt-ignore
}
