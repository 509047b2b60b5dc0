import { Router } from 'express';
import { searchQuery } from '../../contract/index.ts';
import { iso } from '../clock.ts';
import type { Apps } from '../marketplace/apps.ts';
import type { AssetLinks } from '../stac/asset-links.ts';
import type { Catalog } from '../stac/catalog.ts';
import type { ItemRecord } from '../stac/items.ts';
import type { Operations } from '../external-app/operations.ts';
import type { Files } from '../uploads/files.ts';
import type { Users } from '../identity/users.ts';
import type { Launches } from '../marketplace/launches.ts';
import { lineageOf } from '../stac/lineage.ts';
import { importsCatalogId, realKeyword } from '../stac/collections.ts';
import type { ItemSources } from '../stac/item-sources.ts';
import { search } from '../stac/search.ts';
import type { StacObjects } from '../stac/stac-objects.ts';
import { clientGone } from '../web/client-gone.ts';
import { parseValues, SandboxError } from '../web/sandbox-error.ts';
import { sendUntrusted } from '../web/untrusted-content.ts';
import { flatten } from './flatten.ts';
import type { RenderPage } from './page.ts';

const pageSize = 24;

/** Shown for an item whose pixels are gone, or cannot be drawn without GDAL. */
const noPicture =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3"><rect width="4" height="3" fill="#b5bcc0"/><path d="M0 3 1.4 1.2l.9 1 .6-.6L4 3z" fill="#8f989d"/></svg>';

/** Pictures of an item on pages, with their longer sides in pixels. Signed previews have another address on each page, so no browser could keep them. */
const pictureSides = { thumbnail: 240, preview: 1024 } as const;
/** Shown above the list. */
const maxReal = 4;
const maxRealCollections = 100;
/** Sources and results of an item that its page links. */
const maxSources = 10;
const maxResults = 20;

export interface CatalogBrowserOptions {
  readonly catalog: Catalog;
  readonly assets: AssetLinks;
  readonly objects: Pick<StacObjects, 'item'>;
  readonly sources: Pick<ItemSources, 'thumbnail'>;
  readonly apps: Apps;
  readonly operations: Pick<Operations, 'find'>;
  readonly launches: Pick<Launches, 'get'>;
  readonly users: Pick<Users, 'find'>;
  readonly files: Pick<Files, 'find'>;
  readonly render: RenderPage;
}

/** `/catalog`: search by box, dates and collection, on a list and a map; and a page for each item. */
export function catalogBrowser(options: CatalogBrowserOptions): Router {
  const { catalog, assets, objects, sources, apps, operations, launches, users, files, render } = options;
  const router = Router();

  router.get('/catalog', async (req, res) => {
    const asked = textsOf(req.query, ['collection', 'bbox', 'from', 'to', 'offset']);
    const collections = catalog.collections.list();
    try {
      const dates = asked['from'] || asked['to'] ? `${startOf(asked['from'])}/${endOf(asked['to'])}` : undefined;
      const request = parseValues(searchQuery, {
        limit: String(pageSize),
        ...(asked['offset'] && { offset: asked['offset'] }),
        ...(asked['collection'] && { collections: asked['collection'] }),
        ...(asked['bbox'] && { bbox: asked['bbox'] }),
        ...(dates && { datetime: dates }),
      });
      const found = await search(catalog, request);
      const isAll = Object.values(asked).every((value) => value === '');
      render(res, 'catalog', {
        collections,
        asked,
        problem: null,
        real: isAll ? (await realScenes(catalog, maxReal)).map(inList) : [],
        found: { ...found, items: found.items.map(inList) },
        pageSize,
      });
    } catch (error) {
      if (!(error instanceof SandboxError) || error.status !== 400) throw error;
      const problem = error.details?.map(({ path, message }) => `${path} ${message}`).join('; ') ?? error.message;
      render(res.status(400), 'catalog', {
        collections,
        asked,
        problem,
        real: [],
        found: { items: [], numberMatched: 0, offset: 0, limit: pageSize },
        pageSize,
      });
    }
  });

  const inList = (item: ItemRecord) => ({
    ...viewItem(item),
    collection: catalog.collections.find(item.collectionId)?.title ?? item.collectionId,
  });

  router.get('/catalog/:collectionId/:itemId', (req, res) => {
    const item = catalog.items.find(req.params.collectionId, req.params.itemId);
    if (!item) throw new SandboxError('item_not_found', { message: 'There is no such item' });
    const collection = catalog.collections.find(item.collectionId);
    const json = objects.item(item);
    render(res, 'item', {
      item: { ...viewItem(item), collection: collection?.title ?? item.collectionId },
      properties: flatten(item.properties).filter(({ path }) => path !== 'description'),
      bands: item.source.kind === 'scene' ? item.source.files : [],
      assets: Object.values(json.assets).map((asset) => ({
        title: asset.title,
        type: asset.type,
        href: localHref(asset.href),
      })),
      dataHref: localHref(assets.data(item)),
      selfHref: json.links.find(({ rel }) => rel === 'self')?.href ?? '',
      apps: apps.list().slice(0, 3),
      made: madeOf(item),
      results: catalog.items.listDerivedFrom(item, maxResults).map((itemRecord) => viewItem(itemRecord)),
      json,
    });
  });
  /** The making of a result, for people. The decision is that of the operation, if it is the uploader's own. */
  function madeOf(item: ItemRecord) {
    const lineage = lineageOf(item);
    if (!lineage) return null;
    const operation = lineage.operationId === undefined ? null : operations.find(lineage.operationId);
    // The operation must be one of the launch that uploaded the file.
    const launchId = item.source.kind === 'file' ? (files.find(item.source.fileId)?.launchId ?? null) : null;
    const isOwn = operation !== null && operation.launchId === launchId;
    const user = isOwn ? users.find(launches.get(operation.launchId).userId) : null;
    const sources = lineage.sourceItems.slice(0, maxSources).flatMap((sourceItem) => catalog.items.find(sourceItem.collectionId, sourceItem.itemId) ?? []); // oxfmt-ignore
    return {
      ...lineage,
      sources: sources.map((source) => viewItem(source)),
      approvedBy: isOwn && operation.status === 'APPROVED' ? (operation.decidedBy ?? user?.name ?? null) : null,
    };
  }
  for (const [name, side] of Object.entries(pictureSides))
    router.get(`/catalog/:collectionId/:itemId/${name}.webp`, async (req, res) => {
      const item = catalog.items.find(req.params.collectionId, req.params.itemId);
      if (!item) throw new SandboxError('item_not_found', { message: 'There is no such item' });
      const picture = await sources.thumbnail(item, side, clientGone(res)).catch((error: unknown) => {
        if (error instanceof SandboxError && error.code === 'asset_not_available') return null;
        throw error;
      });
      if (picture === null) return void res.type('svg').send(noPicture);
      sendUntrusted(res, 'image/webp');
      res.set('Cache-Control', 'private, max-age=3600').send(Buffer.from(picture));
    });
  return router;
}

/** Finds the newest recorded scenes, of imports and of the data that the sandbox starts with. */
export async function realScenes(catalog: Catalog, most: number): Promise<ItemRecord[]> {
  const shipped = catalog.collections.list().filter(({ keywords }) => keywords.includes(realKeyword));
  const collections = [...catalog.collections.list(importsCatalogId), ...shipped]
    .map(({ id }) => id)
    .slice(0, maxRealCollections);
  if (collections.length === 0) return [];
  const { items } = await search(
    catalog,
    parseValues(searchQuery, { collections: collections.join(','), limit: String(most) }),
  );
  return items.filter(({ source }) => source.kind !== 'none');
}

/** Returns an item for display on a page and a map. */
export function viewItem(item: ItemRecord) {
  return {
    id: item.id,
    collectionId: item.collectionId,
    // For people. The interface makes the title of an upload its file's id, and that of a scene a name without spaces.
    title: typeof item.properties['name'] === 'string' ? item.properties['name'] : item.title,
    datetime: iso(item.datetimeMs),
    box: item.box,
    footprint: item.footprint,
    kind: item.source.kind,
    description: typeof item.properties['description'] === 'string' ? item.properties['description'] : null,
    clouds: typeof item.properties['eo:cloud_cover'] === 'number' ? item.properties['eo:cloud_cover'] : null,
    thumbHref: `/catalog/${encodeURIComponent(item.collectionId)}/${encodeURIComponent(item.id)}/thumbnail.webp`,
    href: `/catalog/${encodeURIComponent(item.collectionId)}/${encodeURIComponent(item.id)}`,
    previewHref: `/catalog/${encodeURIComponent(item.collectionId)}/${encodeURIComponent(item.id)}/preview.webp`,
  };
}

/** Without its origin: a page may be read by another name of this host. */
function localHref(href: string): string {
  const { pathname, search: query } = new URL(href);
  return pathname + query;
}

function textsOf(query: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, typeof query[name] === 'string' ? query[name].trim() : '']));
}

const startOf = (day: string | undefined) => (day ? `${day}T00:00:00Z` : '..');
const endOf = (day: string | undefined) => (day ? `${day}T23:59:59Z` : '..');
