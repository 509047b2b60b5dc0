import * as z from 'zod';
import { instant, type Immutable } from '../wire.ts';

/** Spec 2.1: what every catalog says it conforms to. */
export const conformanceClasses = [
  'https://api.stacspec.org/v1.0.0/core',
  'https://api.stacspec.org/v1.0.0/collections',
  'https://api.stacspec.org/v1.0.0/item-search',
  'https://api.stacspec.org/v1.0.0/item-search#fields',
  'https://api.stacspec.org/v1.0.0/item-search#sort',
  'http://www.opengis.net/spec/cql2/1.0/conf/cql2-json',
  'http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core',
  'http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/oas30',
  'http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson',
] as const;

/** The version of STAC that the sandbox speaks. */
export const stacVersion = '1.0.0';

/** Spec 2.3: every item names both. */
export const itemExtensions = [
  'https://stac-extensions.github.io/view/v1.0.0/schema.json',
  'https://stac-extensions.github.io/sar/v1.2.0/schema.json',
] as const;

/** Beside them on items that carry a `raster` asset. @assumed item-raster, as the asset is */
export const projectionExtension = 'https://stac-extensions.github.io/projection/v1.1.0/schema.json';

/** Spec 2.1, 2.2, 2.3: link and asset media types. */
export const mediaTypes = {
  json: 'application/json',
  geojson: 'application/geo+json',
  html: 'text/html',
  jpeg: 'image/jpeg',
  png: 'image/png',
  zip: 'application/zip',
  geotiff: 'image/tiff; application=geotiff',
  openapi: 'application/vnd.oai.openapi+json;version=3.0',
} as const;

const mediaType = z.string();
const href = z.string().min(1);
const box = z.tuple([z.number(), z.number(), z.number(), z.number()]);

/** Spec 2.3, at the end. `body` and `merge` as STAC's item search has them for a POST. */
export const stacLink = z
  .object({
    rel: z.string(),
    href,
    type: mediaType.optional(),
    title: z.string().optional(),
    method: z.enum(['GET', 'POST']).optional(),
    body: z.record(z.string(), z.unknown()).optional(),
    merge: z.boolean().optional(),
  })
  .meta({ id: 'Link' });
/** A link of a STAC object. */
export type StacLink = Immutable<z.infer<typeof stacLink>>;

const asset = z.object({ href, title: z.string(), type: mediaType, roles: z.array(z.string()) });
/** `raster`, or one for each band of a scene by its name: the source itself with the fields of the projection extension, for standard clients. @assumed item-raster */
const rasterAsset = asset.extend({
  'proj:epsg': z.int().optional(),
  'proj:shape': z.array(z.int()).length(2).optional(),
  'proj:transform': z.array(z.number()).optional(),
});

/** Spec 2.1 */
export const stacCatalog = z
  .object({
    id: z.string(),
    title: z.string(),
    type: z.literal('Catalog'),
    description: z.string(),
    stac_version: z.literal(stacVersion),
    conformsTo: z.array(z.string()),
    links: z.array(stacLink),
  })
  .meta({ id: 'Catalog' });
/** A STAC Catalog (spec 2.1). */
export type StacCatalog = Immutable<z.infer<typeof stacCatalog>>;

/** Spec 2.2 */
export const stacCollection = z
  .object({
    id: z.string(),
    type: z.literal('Collection'),
    title: z.string(),
    description: z.string(),
    license: z.string(),
    extent: z.object({
      spatial: z.object({ bbox: z.array(box) }),
      temporal: z.object({ interval: z.array(z.tuple([instant, instant.nullable()])) }),
    }),
    keywords: z.array(z.string()),
    stac_version: z.literal(stacVersion),
    links: z.array(stacLink),
    assets: z.object({ thumbnail: asset }),
  })
  .meta({ id: 'Collection' });
/** A STAC Collection (spec 2.2). */
export type StacCollection = Immutable<z.infer<typeof stacCollection>>;

const ring = z.array(z.array(z.number()).min(2)).min(4);
/** Properties of spec 2.3, and whatever else an item has. */
const itemProperties = z.looseObject({
  datetime: instant,
  name: z.string(),
  description: z.string().nullable(),
  'platform:layer_type': z.string(),
  layer_type: z.string(),
  'platform:ingestion_date': z.string(),
  source_type: z.string(),
  'platform:source': z.string(),
  'platform:source_type': z.string(),
  'platform:source_sub_type': z.string(),
});

/** Spec 2.3. @assumed antimeridian: a footprint across the antimeridian is a MultiPolygon (RFC 7946, 3.1.9); the spec shows Polygon */
export const stacItem = z
  .object({
    type: z.literal('Feature'),
    id: z.string(),
    title: z.string(),
    collection: z.string(),
    geometry: z.discriminatedUnion('type', [
      z.object({ type: z.literal('Polygon'), coordinates: z.array(ring) }),
      z.object({ type: z.literal('MultiPolygon'), coordinates: z.array(z.array(ring)) }),
    ]),
    bbox: box,
    properties: itemProperties,
    assets: z.object({ rendered_preview: asset, data: asset }).catchall(rasterAsset),
    links: z.array(stacLink),
    stac_version: z.literal(stacVersion),
    stac_extensions: z.array(z.string()),
  })
  .meta({ id: 'Item' });
/** A STAC Item (spec 2.3). */
export type StacItem = Immutable<z.infer<typeof stacItem>>;

/** An item of which `fields` left something out. */
const partialItem = stacItem
  .partial()
  .required({ type: true, id: true, collection: true })
  .extend({
    properties: itemProperties.partial().optional(),
    geometry: z.looseObject({}).optional(),
    assets: z.record(z.string(), asset.partial().loose()).optional(),
  })
  .meta({ id: 'PartialItem' });
const features = { type: z.literal('FeatureCollection'), links: z.array(stacLink) };

/** The items list (spec 4.1). The counts are for standard clients. */
export const itemsPage = z
  .object({
    ...features,
    features: z.array(stacItem),
    numberMatched: z.int().optional(),
    numberReturned: z.int().optional(),
  })
  .meta({ id: 'ItemsPage' });

/** The answer to a search (spec 4.2). */
export const searchPage = z
  .object({
    ...features,
    features: z.array(z.union([stacItem, partialItem])),
    numberMatched: z.int(),
    numberReturned: z.int(),
    limit: z.int().optional(),
    offset: z.int().optional(),
    sortby: z.array(z.object({ field: z.string(), direction: z.enum(['asc', 'desc']) })),
  })
  .meta({ id: 'SearchPage' });

/** The properties that `sortby` takes, as a JSON Schema of items (STAC's sort extension). */
export const stacSortables = z
  .object({
    $schema: z.literal('https://json-schema.org/draft/2019-09/schema'),
    $id: z.string(),
    type: z.literal('object'),
    title: z.string(),
    properties: z.record(z.string(), z.object({})),
    additionalProperties: z.literal(false),
  })
  .meta({ id: 'Sortables' });

/** Paths of spec 4.1 and 4.2; those from `conformance` on are for standard clients. @assumed standard-paths: the latter */
export const stacPaths = {
  root: '/public/stac',
  catalog: '/public/stac/catalogs/:catalogId',
  collection: '/public/stac/collections/:collectionId',
  items: '/public/stac/collections/:collectionId/items',
  item: '/public/stac/collections/:collectionId/items/:id',
  search: '/public/stac/search',
  conformance: '/public/stac/conformance',
  sortables: '/public/stac/sortables',
  collections: '/public/stac/collections',
  api: '/public/stac/api',
} as const;
