import * as z from 'zod';
import { tolerant } from '../wire.ts';

/** An item as a client that wants its data needs it; what the platform leaves out is undefined. */
export interface CatalogItem {
  readonly id: string;
  readonly collection?: string | undefined;
  readonly title?: string | undefined;
  /** For people, where the item has one. */
  readonly name?: string | undefined;
  readonly datetime?: string | undefined;
  readonly sourceType?: string | undefined;
  /** Percent, where the item says so (`eo:cloud_cover`). */
  readonly cloudCover?: number | undefined;
  readonly bbox?: readonly number[] | undefined;
  /** Bands of the item: `eo:bands` of the EO extension, or `bands` of STAC 1.1. @assumed item-bands: the spec names none */
  readonly bands?: readonly CatalogBand[] | undefined;
  /** Rows and columns, where the item says so (`proj:shape` of the projection extension). @assumed item-shape, as `bands` */
  readonly shape?: readonly number[] | undefined;
  readonly geometry?: unknown;
  /** Temporary link to the zip archive of the source file (spec 2.3). */
  readonly dataHref?: string | undefined;
  readonly previewHref?: string | undefined;
}

/** A band by the names that its item gives it. */
export interface CatalogBand {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly common_name?: string | undefined;
  readonly 'eo:common_name'?: string | undefined;
  /** The value is `stored * scale + offset` (`raster:bands` of the raster extension, or the fields of a STAC 1.1 band). @assumed item-bands, as the names */
  readonly scale?: number | undefined;
  readonly offset?: number | undefined;
  /** The stored number that marks no data. */
  readonly nodata?: number | undefined;
}

/** A page of items, as the client reads it. */
export interface CatalogItems {
  readonly items: readonly CatalogItem[];
  readonly numberMatched?: number | undefined;
}

/** A catalog or collection, with what its `child` links lead to. */
export interface CatalogNode {
  readonly id: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly children: readonly { readonly kind: 'catalog' | 'collection'; readonly id: string }[];
}

const href = tolerant(z.object({ href: z.string() }), []);
const bandWord = z.string().max(200);
const inNumbers = { scale: z.number(), offset: z.number(), nodata: z.number() };
const band = tolerant(
  z.object({
    ...{ name: bandWord, description: bandWord, common_name: bandWord, 'eo:common_name': bandWord },
    ...inNumbers,
    ...{ 'raster:scale': z.number(), 'raster:offset': z.number() },
  }),
  [],
);
const rasterBands = z.array(tolerant(z.object(inNumbers), [])).max(10_000);
const bands = z.array(band).min(1).max(10_000);
const shape = z.array(z.int().min(1)).length(2);
const properties = tolerant(
  z.object({
    datetime: z.string(),
    name: z.string(),
    source_type: z.string(),
    'eo:cloud_cover': z.number(),
    'eo:bands': bands,
    bands,
    'raster:bands': rasterBands,
    'proj:shape': shape,
  }),
  [],
);
const dataAsset = tolerant(
  z.object({ href: z.string(), 'eo:bands': bands, bands, 'raster:bands': rasterBands, 'proj:shape': shape }),
  [],
);
const assets = tolerant(z.object({ data: dataAsset, rendered_preview: href }), []);
const item = tolerant(
  z.object({
    id: z.string(),
    collection: z.string(),
    title: z.string(),
    bbox: z.array(z.number()),
    geometry: z.unknown(),
    properties,
    assets,
  }),
  ['id'],
);
const page = z.object({ features: z.array(z.unknown()), numberMatched: z.int().optional().catch(undefined) });
const node = tolerant(
  z.object({ id: z.string(), title: z.string(), description: z.string(), links: z.array(z.unknown()) }),
  ['id'],
);
const childLink = z.object({ rel: z.literal('child'), href: z.string() });

/** Adds `raster:bands` to the named bands if both lists have the same length. */
function inOrder(
  named: z.output<typeof bands> | undefined,
  raster: z.output<typeof rasterBands>,
): readonly CatalogBand[] | undefined {
  return named?.map((described, i): CatalogBand => {
    const { 'raster:scale': scale, 'raster:offset': offset, ...rest } = described;
    const numbers = raster.length === named.length ? raster[i] : undefined;
    return {
      ...rest,
      scale: numbers?.scale ?? described.scale ?? scale,
      offset: numbers?.offset ?? described.offset ?? offset,
      nodata: numbers?.nodata ?? described.nodata,
    };
  });
}

/** An item as the client reads it. Throws `z.ZodError` if it has no identifier. */
export function readItem(body: unknown): CatalogItem {
  const { properties: of, assets: has, ...rest } = item.parse(body);
  return {
    ...rest,
    name: of?.name,
    datetime: of?.datetime,
    sourceType: of?.source_type,
    cloudCover: of?.['eo:cloud_cover'],
    bands: inOrder(
      of?.['eo:bands'] ?? of?.bands ?? has?.data?.['eo:bands'] ?? has?.data?.bands,
      of?.['raster:bands'] ?? has?.data?.['raster:bands'] ?? [],
    ),
    shape: of?.['proj:shape'] ?? has?.data?.['proj:shape'],
    dataHref: has?.data?.href,
    previewHref: has?.rendered_preview?.href,
  };
}

/** The identifier that a catalog's or collection's address ends in. The address itself is not followed: it may be anybody's. */
function childOf(link: unknown): CatalogNode['children'] {
  const read = childLink.safeParse(link);
  const [, kind, id] = (read.success && /(?:^|\/)(catalog|collection)s\/([^/?#]+)\/?$/.exec(read.data.href)) || [];
  try {
    const decoded = id === undefined ? '' : decodeURIComponent(id);
    return decoded === '' || decoded === '.' || decoded === '..'
      ? []
      : [{ kind: kind === 'catalog' ? kind : 'collection', id: decoded }];
  } catch {
    return []; // no percent-encoding
  }
}

/** A catalog or collection as the client reads it. Throws `z.ZodError` if it has no identifier. */
export function readNode(body: unknown): CatalogNode {
  const { id, title, description, links } = node.parse(body);
  return { id, title, description, children: (links ?? []).flatMap(childOf) };
}

/** A page of items as the client reads it. Skips items without an identifier: they are of no use, but must not spoil the others. */
export function readItems(body: unknown): CatalogItems {
  const { features, numberMatched } = page.parse(body);
  const items = features.flatMap((feature) => (item.safeParse(feature).success ? [readItem(feature)] : []));
  return { items, numberMatched };
}
