import { limits, pageLimits, stacPaths, uploadFile } from '../../contract/index.ts';
import type { RawAnswer } from '../facts.ts';
import { NotObserved, type Conversation } from '../target.ts';
import {
  bodyOf,
  isOk,
  json,
  list,
  needed,
  nobody,
  probe,
  record,
  taken,
  text,
  type Findings,
  type Place,
} from './probe.ts';

const stacPlace: Place = { file: 'contract/stac/objects.ts', symbol: 'stacPaths', section: '4.1' };
const searchPlace: Place = { file: 'contract/stac/search-request.ts', symbol: 'strictSearchRequest', section: '4.2' };
const errorPlace: Place = { file: 'contract/error-codes.ts', symbol: 'errorBody', section: '7' };
const limitPlace: Place = { file: 'contract/limits.ts', symbol: 'limits', section: '8' };

const everything = { bbox: [-180, -90, 180, 90], datetime: '1970-01-01T00:00:00.000Z/2100-01-01T00:00:00.000Z' };
const idsOf = (answer: RawAnswer) =>
  list(bodyOf(answer)['features']).map((feature) => text(record(feature)['id']) ?? '');

/** Path of a search, which a profile may change. */
const searchPath = (at: Conversation) =>
  at.target.profile.calls.searchItems.encode({ ...everything, collections: [] }).path;

/** A search with the three fields that the specification requires, and more. */
function search(at: Conversation, found: Findings, name: string, more: object = {}) {
  const collections = [needed(found.collectionId, ...someCollection(at))];
  return at.send(name, { method: 'POST', path: searchPath(at), ...json({ ...everything, collections, ...more }) });
}

const someCollection = (at: Conversation) => ['collection with items', at, 'catalog/root'] as const;

const lastSegment = (href: unknown, kind: 'catalogs' | 'collections') => {
  const [, id] = new RegExp(`/${kind}/([^/?#]+)/?$`).exec(typeof href === 'string' ? href : '') ?? [];
  return id === undefined ? undefined : decodeURIComponent(id);
};

const linksOf = (answer: RawAnswer, rel: string) =>
  list(bodyOf(answer)['links'])
    .map(record)
    .filter((link) => link['rel'] === rel)
    .map((link) => link['href']);

/** GET, and POST to the search: they leave nothing behind. */
export const read = [
  probe('catalog', 'read', stacPlace, async (at, found) => {
    const root = await at.call('catalog/root', 'getCatalog', { catalogId: null });
    const waiting = linksOf(root, 'child');
    const seen = new Set<unknown>(waiting);
    // Down to the first collection of rasters, or else of anything, some steps at most.
    for (let steps = 0, isDone = false; waiting.length > 0 && steps < 12 && !isDone; steps++) {
      const href = waiting.shift();
      const [catalogId, collectionId] = [lastSegment(href, 'catalogs'), lastSegment(href, 'collections')];
      if (collectionId !== undefined) {
        const mark = at.exchanges.length;
        const listing = await at.send('catalog/looking', {
          method: 'GET',
          path: `${stacPaths.items.replace(':collectionId', encodeURIComponent(collectionId))}?limit=1`,
        });
        at.exchanges.length = mark;
        const [item] = list(bodyOf(listing)['features']).map(record);
        isDone = record(item?.['properties'])['layer_type'] === 'RASTER';
        if (item && (isDone || found.collectionId === undefined)) found.collectionId = collectionId;
      } else if (catalogId !== undefined) {
        const mark = at.exchanges.length;
        const node = await at.call('catalog/child', 'getCatalog', { catalogId });
        if (found.catalogId !== undefined) at.exchanges.length = mark;
        found.catalogId ??= catalogId;
        const fresh = linksOf(node, 'child').filter((link) => !seen.has(link));
        waiting.push(...fresh);
        fresh.forEach((id) => seen.add(id));
      }
    }
    needed(found.collectionId, ...someCollection(at));
  }),
  probe('collection', 'read', stacPlace, async (at, found) => {
    await at.call('collection/one', 'getCollection', {
      collectionId: needed(found.collectionId, ...someCollection(at)),
    });
  }),
  probe('items-list', 'read', stacPlace, async (at, found) => {
    const path = stacPaths.items.replace(
      ':collectionId',
      encodeURIComponent(needed(found.collectionId, ...someCollection(at))),
    );
    const page = await at.send('items-list/first', { method: 'GET', path: `${path}?limit=1` });
    const second = await at.send('items-list/second', { method: 'GET', path: `${path}?limit=1&offset=1` });
    const [first, next] = [idsOf(page)[0], idsOf(second)[0]];
    if (first && next) at.note('items-list/items-query', { pages: first === next ? 'the same' : 'disjoint' });
    await at.send('items-list/unknown parameter', { method: 'GET', path: `${path}?drift=1` });
    await at.send('items-list/limit 0', { method: 'GET', path: `${path}?limit=0` });
    const [item] = list(bodyOf(page)['features']).map(record);
    const assets = record(item?.['assets']);
    const href = (name: string) => text(record(assets[name])['href']) ?? '';
    const id = text(item?.['id']);
    if (id !== undefined)
      found.item = { id, title: text(item?.['title']) ?? id, data: href('data'), preview: href('rendered_preview') };
  }),
  probe('get-item', 'read', stacPlace, async (at, found) => {
    const { id, title } = needed(found.item, 'item', at, 'items-list/first');
    const collectionId = needed(found.collectionId, ...someCollection(at));
    const byId = await at.call('get-item/by id', 'getItem', { collectionId, itemId: id });
    const byTitle = await at.call('get-item/by title', 'getItem', { collectionId, itemId: title });
    const [wanted, other] = [bodyOf(byId)['id'], bodyOf(byTitle)['id']];
    if (isOk(byId) && isOk(byTitle) && wanted !== undefined && other !== undefined)
      at.note('get-item/found', { 'by title': wanted === other ? 'the same' : 'another' });
  }),
  probe('data', 'read', stacPlace, async (at, found) => {
    const { data } = needed(found.item, 'item', at, 'items-list/first');
    if (data === '') throw new NotObserved('the item has no data');
    await at.send('data/its first bytes', {
      method: 'GET',
      path: data,
      headers: { range: 'bytes=0-99' },
      authenticated: false,
      isOfApp: true,
    });
  }),
  probe('preview', 'read', limitPlace, async (at, found) => {
    const { preview } = needed(found.item, 'item', at, 'items-list/first');
    if (preview === '') throw new NotObserved('the item has no preview');
    await at.send('preview/as it is linked', { method: 'GET', path: preview, authenticated: false });
    const larger = new URL(preview, at.target.url);
    larger.searchParams.set('width', String(limits.previewSidePixels + 1));
    await at.send('preview/preview-size', { method: 'GET', path: larger.href, authenticated: false });
  }),
  probe('search-pages', 'read', searchPlace, async (at, found) => {
    const collections = [needed(found.collectionId, ...someCollection(at))];
    const wanted = {
      ...everything,
      collections,
      sortby: [{ field: 'properties.datetime', direction: 'desc' as const }],
    };
    const first = await at.call('search-pages/first', 'searchItems', { ...wanted, limit: 1, offset: 0 });
    const second = await at.call('search-pages/second', 'searchItems', { ...wanted, limit: 1, offset: 1 });
    const all = await at.call('search-pages/page-size', 'searchItems', { ...everything, collections });
    const [a, b] = [bodyOf(first), bodyOf(second)];
    taken(at, 'search-pages/first');
    const matched = Number(a['numberMatched']);
    const ids = idsOf(first);
    const times = (answer: RawAnswer) =>
      list(bodyOf(answer)['features']).map((feature) => text(record(record(feature)['properties'])['datetime']) ?? '');
    // A missing field is a difference of the answer, and shows nothing about pages.
    const kept = (field: string, fact: string, is: boolean) => (field in a ? { [fact]: String(is) } : {});
    at.note('search-pages/paging', {
      ...kept('limit', 'limit echoed', a['limit'] === 1),
      ...kept('offset', 'offset echoed', b['offset'] === 1),
      ...kept('numberReturned', 'numberReturned', a['numberReturned'] === ids.length),
      ...kept('numberMatched', 'numberMatched stays', a['numberMatched'] === b['numberMatched']),
      ...(Array.isArray(a['features']) && {
        'a page of one': String(ids.length === 1),
        'page 2': matched < 2 ? 'there is none' : ids[0] === idsOf(second)[0] ? 'is page 1' : 'is another',
        'newest first': String((times(first)[0] ?? '') >= (times(second)[0] ?? '')),
      }),
    });
    const returned = idsOf(all).length;
    if (isOk(all) && Number.isInteger(matched) && returned > 0)
      at.note('search-pages/page-size', {
        'without a limit':
          returned === Math.min(matched, pageLimits.default) ? `${pageLimits.default} items` : `${returned} items`,
      });
    await search(at, found, 'search-pages/limit 0', { limit: 0 });
    const large = await search(at, found, 'search-pages/page-size', { limit: pageLimits.max + 1 });
    const { limit } = bodyOf(large);
    if (typeof limit === 'number') at.note('search-pages/page-size', { 'a larger limit': String(limit) });
  }),
  probe('search-extras', 'read', searchPlace, async (at, found) => {
    taken(at, 'search-pages/first');
    const { id } = needed(found.item, 'item', at, 'items-list/first');
    const byId = await search(at, found, 'search-extras/ids', { ids: [id] });
    found.takesIds = isOk(byId) && idsOf(byId).join() === id;
    if (isOk(byId))
      at.note('search-extras/search-extras', { 'by ids': idsOf(byId).join() === id ? 'that item' : 'others' });
    const trimmed = await search(at, found, 'search-extras/fields', {
      fields: { include: ['properties.datetime'] },
      limit: 1,
    });
    if (isOk(trimmed))
      at.note('search-extras/search-extras', {
        fields: list(bodyOf(trimmed)['features']).every((feature) => !('assets' in record(feature)))
          ? 'only those'
          : 'all the same',
      });
    const area = { type: 'Polygon', coordinates: [[[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]] }; // oxfmt-ignore
    await search(at, found, 'search-extras/intersects', { intersects: area, limit: 1 });
    const none = await search(at, found, 'search-extras/filter', {
      filter: { op: '=', args: [{ property: 'id' }, nobody] },
    });
    found.takesFilter = isOk(none) && idsOf(none).length === 0;
    if (isOk(none))
      at.note('search-extras/search-extras', { filter: idsOf(none).length === 0 ? 'applied' : 'not applied' });
    const open = await search(at, found, 'search-extras/open-interval', {
      datetime: '1970-01-01T00:00:00.000Z/..',
      limit: 1,
    });
    if (isOk(open))
      at.note('search-extras/open-interval', {
        'an open end': idsOf(open).length === 1 ? 'is taken' : 'finds nothing',
      });
  }),
  probe('search-bounds', 'read', limitPlace, async (at, found) => {
    taken(at, 'search-pages/first');
    const ring = Array.from({ length: limits.geometryPositions + 1 }, (_, i) => [
      Math.cos((i / limits.geometryPositions) * 2 * Math.PI),
      Math.sin((i / limits.geometryPositions) * 2 * Math.PI),
    ]);
    await search(at, found, 'search-bounds/geometry-positions', {
      intersects: { type: 'Polygon', coordinates: [[...ring, ring[0]]] },
    });
    // A limit of an ignored field cannot be seen.
    if (found.takesIds)
      await search(at, found, 'search-bounds/search-bounds', {
        ids: Array.from({ length: limits.search.identifiers + 1 }, (_, i) => String(i)),
      });
    const collections = [needed(found.collectionId, ...someCollection(at))];
    const deep = `${'{"not":'.repeat(limits.jsonDepth + 1)}1${'}'.repeat(limits.jsonDepth + 1)}`;
    if (found.takesFilter)
      await at.send('search-bounds/json-depth', {
        method: 'POST',
        path: searchPath(at),
        ...json(`${JSON.stringify({ ...everything, collections }).slice(0, -1)},"filter":${deep}}`),
      });
    await search(at, found, 'search-bounds/json-size', { drift: 'x'.repeat(limits.jsonBodyBytes) });
  }),
  probe('standard-paths', 'read', stacPlace, async (at, found) => {
    const collections = encodeURIComponent(needed(found.collectionId, ...someCollection(at)));
    for (const [name, path] of [
      ['conformance', stacPaths.conformance],
      ['sortables', stacPaths.sortables],
      ['collections', stacPaths.collections],
      ['search', `${stacPaths.search}?limit=1&collections=${collections}`],
      ['api', stacPaths.api],
    ] as const)
      await at.send(`standard-paths/${name}`, { method: 'GET', path });
  }),
  probe(
    'list-models',
    'read',
    { file: 'contract/inference/inference.ts', symbol: 'listModels', section: '4.7' },
    async (at) => {
      await at.call('list-models/all', 'listModels', {});
    },
  ),
  probe('refusals', 'read', errorPlace, async (at, found) => {
    const { profile } = at.target;
    const item = { collectionId: nobody, itemId: nobody };
    const without = async (name: string, path: string) =>
      void (await at.send(name, { method: 'GET', path, authenticated: false }));
    await without('refusals/catalog without a key', `${stacPaths.root}/`);
    await without('refusals/file without a key', profile.calls.getFileStatus.encode({ fileId: nobody }).path);
    await without('refusals/app without a key', profile.calls.userDetail.encode({ token: nobody }).path);
    await at.call('refusals/unknown token', 'userDetail', { token: nobody }, { expect: 'refusal' });
    await at.call(
      'refusals/status by an unknown token',
      'getOperation',
      { token: nobody, operationId: nobody },
      { expect: 'refusal' },
    );
    await at.call('refusals/unknown file', 'getFileStatus', { fileId: nobody }, { expect: 'refusal' });
    await at.call('refusals/download of an unknown file', 'getDownloadUrl', { fileId: nobody }, { expect: 'refusal' });
    await at.call('refusals/unknown job', 'getInferenceStatus', { inferenceId: nobody }, { expect: 'refusal' });
    await at.call(
      'refusals/download of an unknown job',
      'downloadInference',
      { inferenceJobId: nobody },
      { expect: 'refusal' },
    );
    await at.call('refusals/unknown catalog', 'getCatalog', { catalogId: nobody }, { expect: 'refusal' });
    await at.call('refusals/unknown collection', 'getCollection', { collectionId: nobody }, { expect: 'refusal' });
    await at.call(
      'refusals/unknown item',
      'getItem',
      { ...item, collectionId: found.collectionId ?? nobody },
      { expect: 'refusal' },
    );
    await at.send('refusals/unknown path', { method: 'GET', path: '/public/drift' });
    await at.send('refusals/wrong method', { method: 'GET', path: uploadFile.path });
    await at.send('refusals/malformed search', { method: 'POST', path: searchPath(at), ...json('{') });
    await at.send('refusals/search of nothing', { method: 'POST', path: searchPath(at), ...json({}) });
  }),
];
