import { parse } from 'node:path';
import { stat } from 'node:fs/promises';
import cors from 'cors';
import { Router, type Request, type RequestHandler, type Response } from 'express';
import {
  catalogForClients,
  conformanceClasses,
  getCatalog,
  getCollection,
  getItem,
  searchItems,
  itemsQuery,
  lenientSearchRequest,
  mediaTypes,
  searchQuery,
  stacPaths,
  strictItemsQuery,
  strictSearchRequest,
} from '../../contract/index.ts';
import type { BeforeCall, PlatformRoute } from '../call/before-call.ts';
import { CallRouter } from '../call/call-router.ts';
import { signedCalls } from '../call/signed-calls.ts';
import { sendAsDownload, sendUntrusted } from '../web/untrusted-content.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import { clientGone } from '../web/client-gone.ts';
import { readRange, setValidator } from '../web/ranges.ts';
import { parseValues, SandboxError } from '../web/sandbox-error.ts';
import {
  dataPath,
  previewOf,
  previewPath,
  rasterPath,
  readPreviewQuery,
  thumbnailPath,
  type AssetLinks,
} from './asset-links.ts';
import type { Catalog } from './catalog.ts';
import { rootCatalogId, type CollectionRecord } from './collections.ts';
import { sendItemZip } from './item-zip.ts';
import type { ItemSources } from './item-sources.ts';
import type { ItemRecord } from './items.ts';
import { openApiDocument } from './openapi.ts';
import { itemsAnswer, searchAnswer, searchView } from './search-pages.ts';
import { search } from './search.ts';
import type { StacObjects } from './stac-objects.ts';

export interface StacRoutesOptions {
  readonly before: BeforeCall;
  readonly catalog: Catalog;
  readonly objects: StacObjects;
  readonly assets: AssetLinks;
  readonly sources: ItemSources;
  readonly keys: ApiKeys;
  readonly strict: boolean;
}

const thumbnailSize = { width: 256, height: 256 };

type Calls = CallRouter<PlatformRoute>;

/** Catalog, collections, items and search (spec 4.1, 4.2), and what their assets lead to. */
export function stacRoutes(options: StacRoutesOptions): Router {
  const router = Router({ caseSensitive: true });
  const links = linkChecks(options);
  const calls: Calls = new CallRouter((row) => options.before(row, links[row.path]), router);
  router.use(
    '/public/stac',
    cors({
      methods: ['GET', 'HEAD', 'POST'],
      // Readers of ranges look at these.
      exposedHeaders: ['X-Request-Id', 'Accept-Ranges', 'Content-Length', 'Content-Range', 'ETag', 'Last-Modified'],
    }),
  );

  answerCatalog(calls, options);
  answerItems(calls, options);
  answerAssets(calls, options);
  return calls.finish();
}

/** The checks of signed addresses, by path: a valid signature or an API key. */
function linkChecks({ assets, keys }: StacRoutesOptions): Readonly<Record<string, RequestHandler>> {
  const linkOf =
    (path: (collectionId: string, id: string) => string): RequestHandler =>
    (req, _res, next) => {
      const isByKey = req.query['signature'] === undefined && keys.find(req.get('x-api-key') ?? '');
      if (!isByKey) assets.verify(path(String(req.params['collectionId']), String(req.params['id'])), req.query);
      next();
    };
  return {
    // Check the size first, because no valid signature covers a size out of bounds.
    [signedCalls.getPreview.path]: (req, res, next) => {
      readPreviewQuery(req.query);
      linkOf(previewPath)(req, res, next);
    },
    [signedCalls.getData.path]: linkOf(dataPath),
    [signedCalls.getRaster.path]: linkOf(rasterPath),
    [signedCalls.getThumbnail.path]: linkOf(thumbnailPath),
  };
}

function answerCatalog(calls: Calls, { catalog, objects, strict }: StacRoutesOptions): void {
  const { collections } = catalog;
  const catalogOf = (id: string) => {
    const found = collections.findCatalog(id);
    if (!found) throw new SandboxError('catalog_not_found');
    return objects.catalog(found);
  };

  calls.on(catalogForClients.getRootCatalog, (_req, res) => void res.json(catalogOf(rootCatalogId)));

  calls.on(getCatalog, (req, res) => void res.json(catalogOf(String(req.params['catalogId']))));

  calls.on(catalogForClients.getConformance, (_req, res) => void res.json({ conformsTo: conformanceClasses }));
  calls.on(catalogForClients.getSortables, async (_req, res) => {
    const sortables = await catalog.sortables();
    res.type('application/schema+json').json({
      $schema: 'https://json-schema.org/draft/2019-09/schema',
      $id: objects.href(stacPaths.sortables),
      type: 'object',
      title: 'What items can be sorted by',
      properties: Object.fromEntries(sortables.map((name) => [name, {}])),
      additionalProperties: false,
    });
  });
  calls.on(
    catalogForClients.getApi,
    (_req, res) =>
      void res.type(mediaTypes.openapi).send(JSON.stringify(openApiDocument(objects.href(''), { isStrict: strict }))),
  );

  calls.on(catalogForClients.getCollections, (_req, res) => {
    const self = {
      rel: 'self',
      href: objects.href(stacPaths.collections),
      type: mediaTypes.json,
      title: 'Collections',
    };
    res.json({
      collections: collections.list().map((collection) => objects.collection(collection)),
      links: [self, objects.rootLink()],
    });
  });
  calls.on(getCollection, (req, res) => void res.json(objects.collection(collectionOf(catalog, req))));
}

/** Items of a collection, and the search. */
function answerItems(calls: Calls, { catalog, objects, strict }: StacRoutesOptions): void {
  calls.on(catalogForClients.getItems, async (req, res) => {
    const query = parseValues(strict ? strictItemsQuery : itemsQuery, req.query);
    const collection = collectionOf(catalog, req);
    sendGeojson(
      res,
      itemsAnswer(
        await search(catalog, { ...query, collections: [collection.id] }, (item) => objects.item(item)),
        collection.id,
        req,
        objects,
        strict,
      ),
    );
  });
  calls.on(getItem, (req, res) => sendGeojson(res, objects.item(itemOf(catalog, req))));

  calls.on(searchItems, async (req, res) => {
    const request = parseValues(strict ? strictSearchRequest : lenientSearchRequest, req.body);
    sendGeojson(
      res,
      searchAnswer(await search(catalog, request, searchView(request, req, objects)), request, req, objects, strict),
    );
  });
  calls.on(catalogForClients.getSearch, async (req, res) => {
    const request = parseValues(searchQuery, req.query);
    sendGeojson(
      res,
      searchAnswer(await search(catalog, request, searchView(request, req, objects)), request, req, objects, strict),
    );
  });
}

/** The files and pictures of items. */
function answerAssets(calls: Calls, { catalog, objects, sources }: StacRoutesOptions): void {
  calls.on(signedCalls.getPreview, async (req, res) => {
    const asked = readPreviewQuery(req.query);
    const item = itemOf(catalog, req);
    const wanted = previewOf(asked, item);
    if (wanted.sourceId !== item.title) throw itemNotFound();
    const png = await sources.preview(item, wanted, clientGone(res));
    sendUntrusted(res, mediaTypes.png);
    res.send(Buffer.from(png));
  });

  calls.on(signedCalls.getData, async (req, res) => {
    const item = itemOf(catalog, req);
    const files = await sources.files(item);
    // The title of an uploaded file's item is the file's identifier.
    const name = item.source.kind === 'file' ? parse(item.source.fileName).name : item.title;
    sendAsDownload(res, `${name}.zip`, mediaTypes.zip);
    await sendItemZip(req, res, files, `${item.title}.json`, objects.item(item));
  });

  calls.on(signedCalls.getRaster, async (req, res, next) => {
    const { band } = req.query;
    const item = itemOf(catalog, req);
    const files = await sources.files(item);
    const file =
      item.source.kind === 'scene'
        ? files[item.source.files.findIndex((sceneFile) => sceneFile.band === band)]
        : files[0];
    if (!file)
      throw new SandboxError('asset_not_available', {
        message: item.source.kind === 'scene' ? 'The item has no such band' : 'The item was made of no file',
      });
    sendAsDownload(res, file.name, 'application/octet-stream');
    const stats = await stat(file.path);
    setValidator(res, stats);
    readRange(req, stats.size);
    res.sendFile(file.path, { dotfiles: 'allow', cacheControl: false }, (error) => {
      if (error && !res.headersSent) next(error);
    });
  });

  calls.on(signedCalls.getThumbnail, async (req, res) => {
    const [newest] = (await search(catalog, { collections: [collectionOf(catalog, req).id], limit: 1 })).items;
    sendAsDownload(res, 'thumbnail.png', mediaTypes.png);
    res.send(
      Buffer.from(
        newest
          ? await sources.preview(
              newest,
              { box: newest.box, sourceId: newest.title, ...thumbnailSize },
              clientGone(res),
            )
          : await sources.blank(thumbnailSize),
      ),
    );
  });
}

function collectionOf({ collections }: Catalog, req: Request): CollectionRecord {
  const found = collections.find(String(req.params['collectionId']));
  if (!found) throw new SandboxError('collection_not_found');
  return found;
}

function itemOf(catalog: Catalog, req: Request): ItemRecord {
  collectionOf(catalog, req);
  const item = catalog.items.find(String(req.params['collectionId']), String(req.params['id']));
  if (!item) throw itemNotFound();
  return item;
}

const itemNotFound = () => new SandboxError('item_not_found');

function sendGeojson(res: Response, body: unknown): void {
  res.type(mediaTypes.geojson).json(body);
}
