import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  completeFileUpload,
  generateUploadId,
  limits,
  pageLimits,
  stacPaths,
  uploadFile,
  type Content,
} from '../contract/index.ts';
import { jsonOf, type RawAnswer } from './facts.ts';
import { multipart, NotObserved, type Conversation, type Level } from './target.ts';

/** Where what a probe looks at is written down: a file below `src`, and a name in it. */
export interface Place {
  readonly file: string;
  readonly symbol: string;
}

/** One thing to find out. What it sends is the same on every platform. */
export interface Probe {
  readonly id: string;
  readonly level: Level;
  /** Of what no call of the wire profile is. */
  readonly place: Place;
  run(at: Conversation, found: Findings): Promise<void>;
}

/** What earlier probes came by. */
export interface Findings {
  catalogId?: string;
  collectionId?: string;
  item?: { readonly id: string; readonly title: string; readonly data: string; readonly preview: string };
  operationId?: string;
  isApproved?: boolean;
  upload?: { readonly uploadId: string; readonly key: string };
  secondUpload?: { readonly uploadId: string; readonly key: string };
  deliveredId?: string;
  fileId?: string;
}

const stacPlace: Place = { file: 'contract/stac/objects.ts', symbol: 'stacPaths' };
const searchPlace: Place = { file: 'contract/stac/search-request.ts', symbol: 'strictSearchRequest' };
const errorPlace: Place = { file: 'contract/error-codes.ts', symbol: 'errorBody' };
const limitPlace: Place = { file: 'contract/limits.ts', symbol: 'limits' };

const nobody = 'drift-nobody-knows-this-0000000000';
const everything = { bbox: [-180, -90, 180, 90], datetime: '1970-01-01T00:00:00.000Z/2100-01-01T00:00:00.000Z' };
/** Of a delivered file: one point. */
export const delivered = Buffer.from(
  JSON.stringify({
    type: 'FeatureCollection',
    features: [{ type: 'Feature', properties: { of: 'drift' }, geometry: { type: 'Point', coordinates: [10, 50] } }],
  }),
);
const content = (bytes: Buffer): Content => ({
  sizeBytes: bytes.length,
  async *open() {
    yield bytes;
  },
});

const record = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const bodyOf = (answer: RawAnswer) => record(jsonOf(answer));
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const idsOf = (answer: RawAnswer) => list(bodyOf(answer)['features']).map((one) => text(record(one)['id']) ?? '');

function needed<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new NotObserved(`no ${what} was found`);
  return value;
}

const json = (value: unknown) => ({
  headers: { 'content-type': 'application/json', accept: 'application/geo+json' },
  body: typeof value === 'string' ? value : JSON.stringify(value),
});

/** A search with the three fields that the specification requires, and more. */
function search(at: Conversation, found: Findings, name: string, more: object = {}) {
  const collections = [needed(found.collectionId, 'collection with items')];
  return at.send(name, { method: 'POST', path: stacPaths.search, ...json({ ...everything, collections, ...more }) });
}

const lastSegment = (href: unknown, kind: 'catalogs' | 'collections') => {
  const [, id] = new RegExp(`/${kind}/([^/?#]+)/?$`).exec(typeof href === 'string' ? href : '') ?? [];
  return id === undefined ? undefined : decodeURIComponent(id);
};

const linksOf = (answer: RawAnswer, rel: string) =>
  list(bodyOf(answer)['links'])
    .map(record)
    .filter((link) => link['rel'] === rel)
    .map((link) => link['href']);

function probe(id: string, level: Level, place: Place, run: Probe['run']): Probe {
  return { id, level, place, run };
}

const read = [
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
        const fresh = linksOf(node, 'child').filter((one) => !seen.has(one));
        waiting.push(...fresh);
        fresh.forEach((one) => seen.add(one));
      }
    }
    needed(found.collectionId, 'collection with items');
  }),
  probe('collection', 'read', stacPlace, async (at, found) => {
    await at.call('collection/one', 'getCollection', {
      collectionId: needed(found.collectionId, 'collection with items'),
    });
  }),
  probe('items-list', 'read', stacPlace, async (at, found) => {
    const path = stacPaths.items.replace(
      ':collectionId',
      encodeURIComponent(needed(found.collectionId, 'collection with items')),
    );
    const page = await at.send('items-list/first', { method: 'GET', path: `${path}?limit=1` });
    const second = await at.send('items-list/second', { method: 'GET', path: `${path}?limit=1&offset=1` });
    at.note('items-list/items-query', { pages: idsOf(page)[0] === idsOf(second)[0] ? 'the same' : 'disjoint' });
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
    const { id, title } = needed(found.item, 'item');
    const collectionId = needed(found.collectionId, 'collection with items');
    const byId = await at.call('get-item/by id', 'getItem', { collectionId, itemId: id });
    const byTitle = await at.call('get-item/by title', 'getItem', { collectionId, itemId: title });
    at.note('get-item/found', { 'by title': bodyOf(byId)['id'] === bodyOf(byTitle)['id'] ? 'the same' : 'another' });
  }),
  probe('data', 'read', stacPlace, async (at, found) => {
    const { data } = needed(found.item, 'item');
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
    const { preview } = needed(found.item, 'item');
    if (preview === '') throw new NotObserved('the item has no preview');
    await at.send('preview/as it is linked', { method: 'GET', path: preview, authenticated: false });
    const larger = new URL(preview, at.target.url);
    larger.searchParams.set('width', String(limits.previewSidePixels + 1));
    await at.send('preview/preview-size', { method: 'GET', path: larger.href, authenticated: false });
  }),
  probe('search-pages', 'read', searchPlace, async (at, found) => {
    const collections = [needed(found.collectionId, 'collection with items')];
    const wanted = {
      ...everything,
      collections,
      sortby: [{ field: 'properties.datetime', direction: 'desc' as const }],
    };
    const first = await at.call('search-pages/first', 'searchItems', { ...wanted, limit: 1, offset: 0 });
    const second = await at.call('search-pages/second', 'searchItems', { ...wanted, limit: 1, offset: 1 });
    const all = await at.call('search-pages/page-size', 'searchItems', { ...everything, collections });
    const [a, b] = [bodyOf(first), bodyOf(second)];
    const matched = Number(a['numberMatched']);
    const times = (answer: RawAnswer) =>
      list(bodyOf(answer)['features']).map((one) => text(record(record(one)['properties'])['datetime']) ?? '');
    at.note('search-pages/paging', {
      'limit echoed': String(a['limit'] === 1),
      'offset echoed': String(b['offset'] === 1),
      numberReturned: String(a['numberReturned'] === idsOf(first).length),
      'numberMatched stays': String(a['numberMatched'] === b['numberMatched']),
      'a page of one': String(idsOf(first).length === 1),
      'page 2': matched < 2 ? 'there is none' : idsOf(first)[0] === idsOf(second)[0] ? 'is page 1' : 'is another',
      'newest first': String((times(first)[0] ?? '') >= (times(second)[0] ?? '')),
    });
    at.note('search-pages/page-size', {
      'without a limit':
        idsOf(all).length === Math.min(matched, pageLimits.default)
          ? `${pageLimits.default} items`
          : `${idsOf(all).length} items`,
    });
    await search(at, found, 'search-pages/limit 0', { limit: 0 });
    const large = await search(at, found, 'search-pages/page-size', { limit: pageLimits.max + 1 });
    at.note('search-pages/page-size', { 'a larger limit': String(bodyOf(large)['limit']) });
  }),
  probe('search-extras', 'read', searchPlace, async (at, found) => {
    const { id } = needed(found.item, 'item');
    const byId = await search(at, found, 'search-extras/ids', { ids: [id] });
    at.note('search-extras/search-extras', { 'by ids': idsOf(byId).join() === id ? 'that item' : 'others' });
    const trimmed = await search(at, found, 'search-extras/fields', {
      fields: { include: ['properties.datetime'] },
      limit: 1,
    });
    at.note('search-extras/search-extras', {
      fields: list(bodyOf(trimmed)['features']).every((one) => !('assets' in record(one)))
        ? 'only those'
        : 'all the same',
    });
    const area = { type: 'Polygon', coordinates: [[[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]] }; // prettier-ignore
    await search(at, found, 'search-extras/intersects', { intersects: area, limit: 1 });
    const none = await search(at, found, 'search-extras/filter', {
      filter: { op: '=', args: [{ property: 'id' }, nobody] },
    });
    at.note('search-extras/search-extras', { filter: idsOf(none).length === 0 ? 'applied' : 'not applied' });
    const open = await search(at, found, 'search-extras/open-interval', {
      datetime: '1970-01-01T00:00:00.000Z/..',
      limit: 1,
    });
    at.note('search-extras/open-interval', { 'an open end': idsOf(open).length === 1 ? 'is taken' : 'finds nothing' });
  }),
  probe('search-bounds', 'read', limitPlace, async (at, found) => {
    const ring = Array.from({ length: limits.geometryPositions + 1 }, (_, i) => [
      Math.cos((i / limits.geometryPositions) * 2 * Math.PI),
      Math.sin((i / limits.geometryPositions) * 2 * Math.PI),
    ]);
    await search(at, found, 'search-bounds/geometry-positions', {
      intersects: { type: 'Polygon', coordinates: [[...ring, ring[0]]] },
    });
    await search(at, found, 'search-bounds/search-bounds', {
      ids: Array.from({ length: limits.search.identifiers + 1 }, (_, i) => String(i)),
    });
    const deep = `${'{"not":'.repeat(limits.jsonDepth + 1)}1${'}'.repeat(limits.jsonDepth + 1)}`;
    await at.send('search-bounds/json-depth', {
      method: 'POST',
      path: stacPaths.search,
      ...json(`{"bbox":[0,0,1,1],"collections":["a"],"datetime":"2020-01-01T00:00:00Z/..","filter":${deep}}`),
    });
    await search(at, found, 'search-bounds/json-size', { drift: 'x'.repeat(limits.jsonBodyBytes) });
  }),
  probe('standard-paths', 'read', stacPlace, async (at, found) => {
    const collections = encodeURIComponent(needed(found.collectionId, 'collection with items'));
    for (const [name, path] of [
      ['conformance', stacPaths.conformance],
      ['sortables', stacPaths.sortables],
      ['collections', stacPaths.collections],
      ['search', `${stacPaths.search}?limit=1&collections=${collections}`],
      ['api', stacPaths.api],
    ] as const)
      await at.send(`standard-paths/${name}`, { method: 'GET', path });
  }),
  probe('list-models', 'read', { file: 'contract/inference/inference.ts', symbol: 'listModels' }, async (at) => {
    await at.call('list-models/all', 'listModels', {});
  }),
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
    await at.send('refusals/malformed search', { method: 'POST', path: stacPaths.search, ...json('{') });
    await at.send('refusals/search of nothing', { method: 'POST', path: stacPaths.search, ...json({}) });
  }),
];

const launchPlace: Place = { file: 'contract/external-app/create-operation.ts', symbol: 'createOperation' };

const launch = [
  probe('user-detail', 'launch', launchPlace, async (at) => {
    await at.call('user-detail/of the launch', 'userDetail', { token: await at.token() });
  }),
  probe('create-operation', 'launch', launchPlace, async (at, found) => {
    const token = await at.token();
    const wanted = { name: 'drift', description: 'npm run drift', parameters: { drift: true } };
    const idempotencyKey = randomUUID();
    const first = await at.call('create-operation/created', 'createOperation', {
      token,
      idempotencyKey,
      operation: wanted,
    });
    const again = await at.call('create-operation/idempotency-key', 'createOperation', {
      token,
      idempotencyKey,
      operation: wanted,
    });
    const { createOperation } = at.target.profile.calls;
    const idOf = (answer: RawAnswer) => {
      try {
        return createOperation.decode(jsonOf(answer)).operationId;
      } catch {
        return undefined;
      }
    };
    const id = idOf(first);
    at.note('create-operation/idempotency-key', {
      'the same key': id === idOf(again) ? 'the same operation' : 'another operation',
    });
    if (id !== undefined) found.operationId = id;
  }),
  probe('operation-refusals', 'launch', launchPlace, async (at) => {
    const token = await at.token();
    const operation = (name: string, parameters = {}) => ({
      token,
      idempotencyKey: randomUUID(),
      operation: { name, parameters },
    });
    const refused = { expect: 'refusal' } as const;
    await at.call('operation-refusals/no name', 'createOperation', operation(''), refused);
    await at.call(
      'operation-refusals/operation-name-length',
      'createOperation',
      operation('x'.repeat(limits.operationNameLength + 1)),
      refused,
    );
    await at.call(
      'operation-refusals/operation-parameters-size',
      'createOperation',
      operation('drift', { drift: 'x'.repeat(limits.operationParametersBytes) }),
      refused,
    );
  }),
  probe('get-operation', 'launch', launchPlace, async (at, found) => {
    const token = await at.token();
    const operationId = needed(found.operationId, 'operation');
    await at.call('get-operation/requested', 'getOperation', { token, operationId });
    await at.call('get-operation/unknown', 'getOperation', { token, operationId: nobody }, { expect: 'refusal' });
    await at.call(
      'get-operation/upload before the approval',
      'initiateUpload',
      { token, upload: { operationId, fileName: 'drift.geojson' } },
      { expect: 'refusal' },
    );
  }),
  probe('renew-token', 'launch', launchPlace, async (at) => {
    const token = await at.token();
    const before = Date.now();
    const renewed = await at.call('renew-token/renewed', 'renewToken', { token });
    const { token: next, expiresAt } = readable(() => at.target.profile.calls.renewToken.decode(jsonOf(renewed)));
    const minutes = Math.round((Date.parse(expiresAt ?? '') - before) / 60_000);
    const wanted = limits.tokenLifetimeMs / 60_000;
    at.note('renew-token/token-life', {
      'lives on': Math.abs(minutes - wanted) <= 1 ? `${wanted} minutes` : `${minutes} minutes`,
    });
    if (next !== undefined) at.renewed(next);
  }),
];

function readable<T extends object>(read: () => T): Partial<T> {
  try {
    return read();
  } catch {
    return {};
  }
}

const filePlace: Place = { file: 'contract/files/chunked-upload.ts', symbol: 'completeFileUpload' };
const refusal = { expect: 'refusal' } as const;
const settleMs = 60_000;

async function settled(at: Conversation, name: string, fileId: string): Promise<void> {
  const { calls } = at.target.profile;
  for (const giveUpAt = Date.now() + settleMs; ;) {
    const mark = at.exchanges.length;
    const answer = await at.call(name, 'getFileStatus', { fileId });
    const { status } = readable(() => calls.getFileStatus.decode(jsonOf(answer)));
    if ((status !== 'QUEUED' && status !== 'IN_PROGRESS') || Date.now() > giveUpAt)
      return at.note(`${name}, in the end`, { status: status ?? 'unknown' });
    at.exchanges.length = mark;
    await sleep(500);
  }
}

const write = [
  probe('approval', 'write', launchPlace, async (at, found) => {
    const operationId = needed(found.operationId, 'operation');
    await at.target.approve(operationId, await at.token());
    const mark = at.exchanges.length;
    const answer = await at.call('approval/approved', 'getOperation', { token: await at.token(), operationId });
    const { status } = readable(() => at.target.profile.calls.getOperation.decode(jsonOf(answer)));
    // What the person has decided is no difference of the platform.
    if (status === 'REJECTED' || status === 'EXPIRED') {
      at.exchanges.length = mark;
      throw new NotObserved(`the operation is ${status}: nothing more is written`);
    }
    at.note('approval/state', { status: status ?? 'unknown' });
    if (status !== 'APPROVED')
      throw new NotObserved(`the operation is ${status ?? 'in no state that the profile reads'}`);
    found.isApproved = true;
  }),
  probe('initiate-upload', 'write', launchPlace, async (at, found) => {
    if (!found.isApproved) throw new NotObserved('no operation is approved');
    const token = await at.token();
    const upload = {
      operationId: needed(found.operationId, 'operation'),
      fileName: 'drift.geojson',
      sourceType: 'POINT' as const,
    };
    const answer = await at.call('initiate-upload/begun', 'initiateUpload', { token, upload });
    const { uploadId, key } = readable(() => at.target.profile.calls.initiateUpload.decode(jsonOf(answer)));
    if (uploadId !== undefined && key !== undefined) found.upload = { uploadId, key };
  }),
  probe('upload-chunk', 'write', launchPlace, async (at, found) => {
    const token = await at.token();
    const chunk = {
      token,
      ...needed(found.upload, 'upload'),
      partNumber: limits.firstPartNumber,
      content: content(delivered),
    };
    await at.call('upload-chunk/first', 'uploadChunk', chunk);
    await at.call('upload-chunk/the same again', 'uploadChunk', chunk);
  }),
  probe('complete-upload', 'write', launchPlace, async (at, found) => {
    const token = await at.token();
    const completion = { ...needed(found.upload, 'upload'), fileSize: delivered.length, sourceType: 'POINT' as const };
    const answer = await at.call('complete-upload/completed', 'completeUpload', { token, completion });
    const { fileId } = readable(() => at.target.profile.calls.completeUpload.decode(jsonOf(answer)));
    const again = await at.call('complete-upload/again', 'completeUpload', { token, completion });
    const second = readable(() => at.target.profile.calls.completeUpload.decode(jsonOf(again)));
    at.note('complete-upload/the same file', { again: second.fileId === fileId ? 'the same file' : 'another file' });
    if (fileId !== undefined) found.deliveredId = fileId;
  }),
  probe('delivered-file', 'write', filePlace, async (at, found) => {
    const fileId = needed(found.deliveredId, 'delivered file');
    await settled(at, 'delivered-file/status', fileId);
    const link = await at.call('delivered-file/link', 'getDownloadUrl', { fileId });
    const url = readable(() => ({
      at: at.target.profile.calls.getDownloadUrl.decode(jsonOf(link) ?? link.body.toString('utf8')),
    })).at;
    if (url === undefined || !URL.canParse(url)) throw new NotObserved('there is no link to the file');
    const whole = await at.send('delivered-file/whole', { method: 'GET', path: url, authenticated: false });
    await at.send('delivered-file/a part', {
      method: 'GET',
      path: url,
      headers: { range: 'bytes=0-9' },
      authenticated: false,
    });
    at.note('delivered-file/bytes', { bytes: whole.body.equals(delivered) ? 'as they were sent' : 'others' });
  }),
  probe(
    'second-upload',
    'write',
    { file: 'contract/profile/wire-profile.ts', symbol: 'severalOutputs' },
    async (at, found) => {
      if (!found.isApproved) throw new NotObserved('no operation is approved');
      const upload = { operationId: needed(found.operationId, 'operation'), fileName: 'drift-2.geojson' };
      const answer = await at.call('second-upload/begun', 'initiateUpload', { token: await at.token(), upload });
      const { uploadId, key } = readable(() => at.target.profile.calls.initiateUpload.decode(jsonOf(answer)));
      if (uploadId !== undefined && key !== undefined) found.secondUpload = { uploadId, key };
    },
  ),
  // On an upload of their own: a platform may clean up what it refuses.
  probe('chunk-refusals', 'write', launchPlace, async (at, found) => {
    const token = await at.token();
    const upload = needed(found.secondUpload, 'second upload');
    const chunk = (partNumber: number) => ({ token, ...upload, partNumber, content: content(delivered) });
    await at.call('chunk-refusals/unknown upload', 'uploadChunk', { ...chunk(1), uploadId: nobody }, refusal);
    await at.call('chunk-refusals/out of order', 'uploadChunk', chunk(3), refusal);
    await at.call('chunk-refusals/most-parts', 'uploadChunk', chunk(limits.maxPartNumber + 1), refusal);
    await at.call('chunk-refusals/first', 'uploadChunk', chunk(1));
    const otherBytes = { ...chunk(1), content: content(Buffer.from('drift')) };
    await at.call('chunk-refusals/other bytes', 'uploadChunk', otherBytes, refusal);
    const completion = { ...upload, fileSize: 1, sourceType: 'POINT' as const };
    await at.call('chunk-refusals/another size', 'completeUpload', { token, completion }, refusal);
  }),
  probe(
    'direct-upload',
    'write',
    { file: 'contract/files/upload-file.ts', symbol: 'uploadFile' },
    async (at, found) => {
      if (!found.isApproved) throw new NotObserved('no operation is approved');
      const file = { field: 'file', fileName: 'drift-direct.geojson', content: delivered };
      const answer = await at.send('direct-upload/sent', {
        method: 'POST',
        path: uploadFile.path,
        ...multipart({ sourceType: 'POINT' }, file),
      });
      const fileId = text(bodyOf(answer)['fileId']);
      if (fileId !== undefined) found.fileId = fileId;
      await at.send('direct-upload/without a file', {
        method: 'POST',
        path: uploadFile.path,
        ...multipart({ sourceType: 'POINT' }, null),
      });
    },
  ),
  probe('file-upload', 'write', filePlace, async (at, found) => {
    if (!found.isApproved) throw new NotObserved('no operation is approved');
    const begun = await at.call('file-upload/begun', 'generateUploadId', { fileName: 'drift-chunked.geojson' });
    const { uploadId, key } = readable(() => at.target.profile.calls.generateUploadId.decode(jsonOf(begun)));
    const upload = { uploadId: needed(uploadId, 'upload'), key: needed(key, 'key') };
    await at.call('file-upload/chunk', 'uploadFileChunk', {
      ...upload,
      partNumber: limits.firstPartNumber,
      content: content(delivered),
    });
    const completion = {
      ...upload,
      fileSize: delivered.length,
      sourceType: 'POINT' as const,
      geometry: JSON.stringify({ type: 'Point', coordinates: [10, 50] }),
      layerProperties: { drift: true },
      vectorMappingProperties: { of: 'of' },
    };
    const answer = await at.call('file-upload/completed', 'completeFileUpload', { completion });
    const { fileId } = readable(() => at.target.profile.calls.completeFileUpload.decode(jsonOf(answer)));
    await settled(at, 'file-upload/source-types', needed(fileId, 'file'));
  }),
  probe('file-refusals', 'write', filePlace, async (at, found) => {
    if (!found.isApproved) throw new NotObserved('no operation is approved');
    const named = (name: string, fileName: string) =>
      at.send(name, {
        method: 'POST',
        path: generateUploadId.path,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ fileName }).toString(),
      });
    await named('file-refusals/file-name', '../drift');
    await named('file-refusals/file-name-size', `${'x'.repeat(limits.fileNameBytes)}.tif`);
    const completing = (name: string, more: object) =>
      at.send(name, {
        method: 'POST',
        path: completeFileUpload.path,
        ...json({ uploadId: nobody, key: nobody, fileSize: 1, sourceType: 'POINT', ...more }),
      });
    await completing('file-refusals/unknown upload', {});
    await completing('file-refusals/file-properties-size', {
      layerProperties: 'x'.repeat(limits.filePropertiesBytes + 1),
    });
    const points = Array.from({ length: limits.footprintPositions + 1 }, (_, i) => `${i / 100} 1`).join(', ');
    await completing('file-refusals/footprint-positions', { geometry: `LINESTRING (${points})` });
  }),
  probe(
    'run-inference',
    'write',
    { file: 'contract/inference/inference.ts', symbol: 'runInference' },
    async (at, found) => {
      const fileId = needed(found.fileId, 'file');
      const { calls } = at.target.profile;
      const models = await at.call('run-inference/models', 'listModels', {});
      at.exchanges.pop();
      const [model] = readable(() => calls.listModels.decode(jsonOf(models))) as readonly { id: string }[];
      const answer = await at.call('run-inference/started', 'runInference', {
        modelId: needed(model?.id, 'model'),
        fileId,
      });
      const { id } = readable(() => calls.runInference.decode(jsonOf(answer)));
      await at.call('run-inference/status', 'getInferenceStatus', { inferenceId: needed(id, 'job') });
      await at.call('run-inference/unknown file', 'runInference', { modelId: nobody, fileId: nobody }, refusal);
    },
  ),
];

/** In the order in which they are made: what one comes by the next ones use. */
export const probes: readonly Probe[] = [...read, ...launch, ...write];

/** What a level makes on the platform, for the person who is asked. */
export const creations: Readonly<Record<Level, string>> = {
  read: 'nothing: it sends GET, and POST to the search',
  launch:
    'one operation named "drift", which nobody needs to decide (up to four more where the platform takes what the kit refuses), and an upload that is begun where it lets that happen before the approval',
  write: `one operation named "drift" and, when you have approved it, three files of ${delivered.length} bytes named drift*.geojson, up to five uploads that are begun and not completed, and one inference job; the interface has no call that takes files away`,
};
