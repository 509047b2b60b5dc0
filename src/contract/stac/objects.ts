import type { MultiPolygon, Polygon } from 'geojson';

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

export const stacVersion = '1.0.0';

/** Spec 2.3: every item names both. */
export const itemExtensions = [
  'https://stac-extensions.github.io/view/v1.0.0/schema.json',
  'https://stac-extensions.github.io/sar/v1.2.0/schema.json',
] as const;

/** Beside them on items that carry a `raster` asset. @assumed, as the asset is */
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

/** Spec 2.3, at the end. `body` and `merge` as STAC's item search has them for a POST. */
export interface StacLink {
  readonly rel: string;
  readonly href: string;
  readonly type?: string;
  readonly title?: string;
  readonly method?: 'GET' | 'POST';
  readonly body?: Readonly<Record<string, unknown>>;
  readonly merge?: boolean;
}

export interface StacAsset {
  readonly href: string;
  readonly title: string;
  readonly type: string;
  readonly roles: readonly string[];
}

/** Fields of the projection extension. */
export interface RasterPlace {
  readonly 'proj:epsg': number;
  readonly 'proj:shape': readonly [number, number];
  readonly 'proj:transform': readonly number[];
}

/** Spec 2.1 */
export interface StacCatalog {
  readonly id: string;
  readonly title: string;
  readonly type: 'Catalog';
  readonly description: string;
  readonly stac_version: typeof stacVersion;
  readonly conformsTo: readonly string[];
  readonly links: readonly StacLink[];
}

/** Spec 2.2 */
export interface StacCollection {
  readonly id: string;
  readonly type: 'Collection';
  readonly title: string;
  readonly description: string;
  readonly license: string;
  readonly extent: {
    readonly spatial: { readonly bbox: readonly (readonly [number, number, number, number])[] };
    readonly temporal: { readonly interval: readonly (readonly [string, string | null])[] };
  };
  readonly keywords: readonly string[];
  readonly stac_version: typeof stacVersion;
  readonly links: readonly StacLink[];
  readonly assets: { readonly thumbnail: StacAsset };
}

/** Spec 2.3. @assumed that a footprint across the antimeridian is a MultiPolygon (RFC 7946, 3.1.9); the spec shows Polygon */
export interface StacItem {
  readonly type: 'Feature';
  readonly id: string;
  readonly title: string;
  readonly collection: string;
  readonly geometry: Polygon | MultiPolygon;
  readonly bbox: readonly [number, number, number, number];
  readonly properties: Readonly<Record<string, unknown>>;
  /** `raster`, the source itself with its place, is for standard clients. */
  readonly assets: { readonly rendered_preview: StacAsset; readonly data: StacAsset; readonly raster?: StacAsset & RasterPlace };
  readonly links: readonly StacLink[];
  readonly stac_version: typeof stacVersion;
  readonly stac_extensions: readonly string[];
}

/** Paths of spec 4.1 and 4.2; those from `conformance` on are for standard clients. @assumed the latter */
export const stacPaths = {
  root: '/public/stac',
  catalog: '/public/stac/catalogs/:catalogId',
  collection: '/public/stac/collections/:collectionId',
  items: '/public/stac/collections/:collectionId/items',
  item: '/public/stac/collections/:collectionId/items/:id',
  search: '/public/stac/search',
  conformance: '/public/stac/conformance',
  collections: '/public/stac/collections',
  api: '/public/stac/api',
} as const;
