import { Router } from 'express';
import { searchQuery } from '../../contract/index.ts';
import { iso } from '../clock.ts';
import type { AssetLinks } from '../stac/asset-links.ts';
import type { Catalog } from '../stac/catalog.ts';
import type { ItemRecord } from '../stac/items.ts';
import { search } from '../stac/search.ts';
import { parseValues, SandboxError } from '../web/sandbox-error.ts';
import { flatten } from './approval-pages.ts';
import type { RenderPage } from './page.ts';

const pageSize = 24;

/** `/catalog`: search by box, dates and collection, on a list and a map; and a page for each item. */
export function catalogBrowser({ catalog, assets, render }: { catalog: Catalog; assets: AssetLinks; render: RenderPage }): Router {
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
      render(res, 'catalog', { collections, asked, problem: null, found: { ...found, items: found.items.map((item) => viewItem(item, assets)) }, pageSize });
    } catch (error) {
      if (!(error instanceof SandboxError) || error.status !== 400) throw error;
      const problem = error.details?.map(({ path, message }) => `${path} ${message}`).join('; ') ?? error.message;
      render(res.status(400), 'catalog', { collections, asked, problem, found: { items: [], numberMatched: 0, offset: 0, limit: pageSize }, pageSize });
    }
  });

  router.get('/catalog/:collectionId/:itemId', (req, res) => {
    const item = catalog.items.find(req.params.collectionId, req.params.itemId);
    if (!item) throw new SandboxError(404, 'item_not_found', 'There is no such item');
    const collection = catalog.collections.find(item.collectionId);
    render(res, 'item', { item: viewItem(item, assets), collection, properties: flatten(item.properties), dataHref: localHref(assets.data(item)) });
  });
  return router;
}

/** As a page shows it and a map draws it. */
export function viewItem(item: ItemRecord, assets: AssetLinks) {
  return {
    id: item.id,
    collectionId: item.collectionId,
    title: item.title,
    datetime: iso(item.datetimeMs),
    box: item.box,
    footprint: item.footprint,
    href: `/catalog/${encodeURIComponent(item.collectionId)}/${encodeURIComponent(item.id)}`,
    previewHref: localHref(assets.preview(item)),
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
