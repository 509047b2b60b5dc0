import { extname } from 'node:path';
import {
  conformanceClasses,
  fillPath,
  itemExtensions,
  mediaTypes,
  projectionExtension,
  stacPaths,
  stacVersion,
  type FieldSet,
  type StacCatalog,
  type StacCollection,
  type StacItem,
  type StacLink,
} from '../../contract/index.ts';
import { iso } from '../clock.ts';
import type { AssetLinks } from './asset-links.ts';
import type { Catalog } from './catalog.ts';
import { rootCatalogId, type CatalogRecord, type CollectionRecord } from './collections.ts';
import type { ItemRecord } from './items.ts';
import { lineageOf } from './lineage.ts';
import { isRecord } from '../../files/index.ts';

export interface StacObjectsOptions {
  readonly catalog: Catalog;
  readonly assets: AssetLinks;
  readonly publicUrl: () => string;
  /** Just the links of the spec; else also those that standard clients look for. */
  readonly strict: boolean;
}

const previewLinkSide = 60;
/** Links of an item to its sources. A search has none: each is looked up. */
const maxSourceLinks = 20;

/** Makes the objects of spec 2.1 to 2.3 out of what is kept. */
export class StacObjects {
  #options: StacObjectsOptions;

  constructor(options: StacObjectsOptions) {
    this.#options = options;
  }

  href(template: string, values: Readonly<Record<string, string>> = {}): string {
    return `${this.#options.publicUrl()}${this.path(template, values)}`;
  }

  /** Throws a plain error, which is never the caller's, for an identifier that no address can have. */
  path(template: string, values: Readonly<Record<string, string>> = {}): string {
    try {
      return fillPath(template, values);
    } catch (cause) {
      throw new Error(`an answer has an identifier that cannot stand in an address (${template})`, { cause });
    }
  }

  catalog(record: CatalogRecord): StacCatalog {
    const { collections } = this.#options.catalog;
    const self = this.href(stacPaths.catalog, { catalogId: record.id });
    const catalogs = collections
      .listCatalogs(record.id)
      .map((child) =>
        link('child', this.href(stacPaths.catalog, { catalogId: child.id }), mediaTypes.json, child.title),
      );
    // A leaf's children are its collections.
    const children =
      catalogs.length > 0
        ? catalogs
        : collections
            .list(record.id)
            .map((child) =>
              link('child', this.href(stacPaths.collection, { collectionId: child.id }), mediaTypes.json, child.title),
            );
    const own = [
      link('self', self, mediaTypes.json, record.title),
      this.rootLink(),
      link('search', this.href(stacPaths.search), mediaTypes.geojson, 'Search for items'),
      ...children,
      link(
        'preview',
        this.href(catalogPaths.preview, { catalogId: record.id }),
        mediaTypes.jpeg,
        `Where the items of ${record.title} lie`,
      ),
      link('about', this.href(catalogPaths.about, { catalogId: record.id }), mediaTypes.html, `About ${record.title}`),
    ];
    return {
      id: record.id,
      title: record.title,
      type: 'Catalog',
      description: record.description,
      stac_version: stacVersion,
      conformsTo: conformanceClasses,
      links: [...own, ...this.#forClients(this.#catalogLinks(record))],
    };
  }

  collection(record: CollectionRecord): StacCollection {
    const extent = this.#options.catalog.extentOf(record.id);
    const self = this.href(stacPaths.collection, { collectionId: record.id });
    return {
      id: record.id,
      type: 'Collection',
      title: record.title,
      description: record.description,
      license: record.license,
      extent: {
        spatial: { bbox: [[...(extent?.box ?? [-180, -90, 180, 90])]] },
        temporal: {
          interval: [[iso(extent?.interval.startMs ?? record.createdAtMs), extent ? iso(extent.interval.endMs) : null]],
        },
      },
      keywords: record.keywords,
      stac_version: stacVersion,
      links: [
        link('self', self, mediaTypes.json, record.title),
        link(
          'items',
          this.href(stacPaths.items, { collectionId: record.id }),
          mediaTypes.geojson,
          `Items of ${record.title}`,
        ),
        this.rootLink(),
        ...this.#forClients([
          link(
            'parent',
            this.href(stacPaths.catalog, { catalogId: record.catalogId }),
            mediaTypes.json,
            'Parent catalog',
          ),
        ]),
      ],
      assets: {
        thumbnail: {
          href: this.#options.assets.thumbnail(record.id),
          type: mediaTypes.png,
          roles: ['thumbnail'],
          title: `Thumbnail of ${record.title}`,
        },
      },
    };
  }

  /**
   * `inSearch`: search results carry two links more (spec 2.3). `withRaster`: also the source itself, for
   * clients that read pixels, where the sandbox is not strict.
   */
  item(record: ItemRecord, { inSearch = false, withRaster = false } = {}): StacItem {
    const { assets } = this.#options;
    const self = this.href(stacPaths.item, { collectionId: record.collectionId, id: record.id });
    const collection = this.href(stacPaths.collection, { collectionId: record.collectionId });
    const root = this.rootLink();
    const rasters = withRaster ? this.#rasterAssets(record) : {};
    return {
      type: 'Feature',
      id: record.id,
      title: record.title,
      collection: record.collectionId,
      geometry: record.footprint,
      bbox: record.box,
      // The creator of the item provides the properties of the spec.
      properties: { datetime: iso(record.datetimeMs), ...record.properties } as StacItem['properties'],
      assets: {
        rendered_preview: {
          href: assets.preview(record),
          title: 'Rendered preview',
          type: mediaTypes.png,
          roles: ['overview'],
        },
        data: { href: assets.data(record), title: 'Source data', type: mediaTypes.zip, roles: ['data'] },
        ...rasters,
      },
      links: [
        { ...link('self', self, mediaTypes.geojson, record.title), method: 'GET' },
        { ...link('collection', collection, mediaTypes.json, record.collectionId), method: 'GET' },
        ...(inSearch
          ? [
              { ...root, method: 'GET' as const },
              {
                ...link(
                  'preview',
                  assets.preview(record, { width: previewLinkSide, height: previewLinkSide }),
                  mediaTypes.html,
                  'Preview',
                ),
                method: 'GET' as const,
              },
            ]
          : this.#forClients([root])),
        ...this.#forClients([
          link('parent', collection, mediaTypes.json, record.collectionId),
          ...(inSearch ? [] : this.#sourcesOf(record)).map((source) => {
            const href = this.href(stacPaths.item, { collectionId: source.collectionId, id: source.id });
            return link('derived_from', href, mediaTypes.geojson, source.title);
          }),
        ]),
      ],
      stac_version: stacVersion,
      stac_extensions: Object.keys(rasters).length > 0 ? [...itemExtensions, projectionExtension] : itemExtensions,
    };
  }

  /** The source as clients such as GDAL read it, range by range; they need its place on the asset. Of a scene each band by its name. */
  #rasterAssets(record: ItemRecord): Readonly<Record<string, StacItem['assets'][string]>> {
    const { source } = record;
    if (this.#options.strict || source.kind === 'none' || !source.grid) return {};
    const { epsg, shape, transform } = source.grid;
    const place = { roles: ['data'], 'proj:epsg': epsg, 'proj:shape': shape, 'proj:transform': transform };
    if (source.kind !== 'scene')
      return {
        raster: {
          href: this.#options.assets.raster(record),
          title: 'Source raster',
          type: mediaTypeOf(nameOfSource(source)),
          ...place,
        },
      };
    return Object.fromEntries(
      source.files.map(({ path, band, name }) => [
        band,
        {
          href: this.#options.assets.raster(record, band),
          title: name === band ? band : `${name} (${band})`,
          type: mediaTypeOf(path),
          ...place,
        },
      ]),
    );
  }

  /** Items of this catalog that a result's uploader names as its sources. */
  #sourcesOf(record: ItemRecord): ItemRecord[] {
    const { items } = this.#options.catalog;
    return (lineageOf(record)?.sourceItems ?? [])
      .slice(0, maxSourceLinks)
      .flatMap((sourceItem) => items.find(sourceItem.collectionId, sourceItem.itemId) ?? []);
  }

  rootLink(): StacLink {
    return link('root', this.href(stacPaths.catalog, { catalogId: rootCatalogId }), mediaTypes.json, 'Root catalog');
  }

  #catalogLinks(record: CatalogRecord): StacLink[] {
    const api = [
      {
        ...link('search', this.href(stacPaths.search), mediaTypes.geojson, 'Search for items'),
        method: 'POST' as const,
      },
      link('data', this.href(stacPaths.collections), mediaTypes.json, 'Collections'),
      link('conformance', this.href(stacPaths.conformance), mediaTypes.json, 'Conformance classes'),
      link(
        'http://www.opengis.net/def/rel/ogc/1.0/sortables',
        this.href(stacPaths.sortables),
        'application/schema+json',
        'What items can be sorted by',
      ),
      link('service-desc', this.href(stacPaths.api), mediaTypes.openapi, 'OpenAPI description'),
      link('service-doc', this.href(catalogPaths.about, { catalogId: record.id }), mediaTypes.html, 'About'),
    ];
    return record.parentId === null
      ? api
      : [
          ...api,
          link(
            'parent',
            this.href(stacPaths.catalog, { catalogId: record.parentId }),
            mediaTypes.json,
            'Parent catalog',
          ),
        ];
  }

  #forClients(links: readonly StacLink[]): readonly StacLink[] {
    return this.#options.strict ? [] : links;
  }
}

function nameOfSource(source: ItemRecord['source']): string {
  return source.kind === 'file' || source.kind === 'shipped'
    ? source.fileName
    : source.kind === 'path'
      ? source.path
      : 'scene.tif';
}

/** Media type of a source as it is read, by its name. */
function mediaTypeOf(name: string): string {
  const types: Readonly<Record<string, string>> = {
    '.tif': mediaTypes.geotiff,
    '.tiff': mediaTypes.geotiff,
    '.jp2': 'image/jp2',
    '.png': mediaTypes.png,
    '.jpg': mediaTypes.jpeg,
    '.jpeg': mediaTypes.jpeg,
    '.nc': 'application/netcdf',
  };
  return types[extname(name).toLowerCase()] ?? 'application/octet-stream';
}

/** Paths of a catalog's links `preview` and `about`; they need no key. */
export const catalogPaths = {
  preview: '/catalogs/:catalogId/preview.jpg',
  about: '/catalogs/:catalogId/about',
} as const;

export function link(rel: string, href: string, type: string, title: string): StacLink {
  return { rel, href, type, title };
}

const alwaysIncluded = ['id', 'type', 'collection'];

/** The fields extension: `include` gives those with id, type and collection, `exclude` takes away from the default set; in both, include wins. */
export function withFields(item: StacItem, fields: FieldSet | undefined): Readonly<Record<string, unknown>> {
  const [include, exclude] = [new Set(fields?.include), new Set(fields?.exclude)];
  const whole: Record<string, unknown> = { ...item };
  if (include.size === 0 && exclude.size === 0) return whole;
  let result: Record<string, unknown> = include.size > 0 ? {} : whole;
  // The broader first: what lies in one that is there already is there too.
  const wanted = [...new Set([...alwaysIncluded, ...include])]
    .map((path) => pathOf(path, whole))
    .sort((a, b) => a.length - b.length);
  if (include.size > 0) for (const path of wanted) copy(whole, result, path);
  // Removals apply to a copy.
  if (exclude.size > 0) result = structuredClone(result);
  const including = prefixesOf(include);
  for (const path of exclude) if (!including.has(path)) remove(result, pathOf(path, whole));
  return result;
}

/** The names, and all that they begin with. */
function prefixesOf(names: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...names].flatMap((name) => name.split('.').map((_, i, steps) => steps.slice(0, i + 1).join('.'))));
}

/** `properties.eo:cloud_cover` is two steps; a bare name that the item does not have is a property. */
function pathOf(path: string, item: Readonly<Record<string, unknown>>): string[] {
  const [first = '', ...rest] = path.split('.');
  if (first === 'properties' && rest.length > 0) return [first, rest.join('.')];
  return Object.hasOwn(item, first) ? [first, ...rest] : ['properties', path];
}

function remove(target: Record<string, unknown>, [first = '', ...rest]: string[]): void {
  if (!Object.hasOwn(target, first)) return;
  if (rest.length === 0) delete target[first];
  else if (isRecord(target[first])) remove(target[first], rest);
}

function copy(
  from: Readonly<Record<string, unknown>>,
  to: Record<string, unknown>,
  [first = '', ...rest]: string[],
): void {
  if (!Object.hasOwn(from, first)) return;
  const value = from[first];
  // It is there, whole.
  if (to[first] === value) return;
  if (rest.length === 0) to[first] = value;
  else if (isRecord(value)) copy(value, (to[first] = isRecord(to[first]) ? to[first] : {}), rest);
}
