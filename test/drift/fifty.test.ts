// @module-tag all
/** Fifty platforms that differ in one thing each: it is found, and blamed on its own assumption, and on no other. */
import { createServer, request as send, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { assumedProfile, wireProfile } from '../../src/contract/index.ts';
import { strangeProfile } from '../support/strange-profile.ts';
import { compare, judge, observe, unmadeOf, type Observations } from '../../src/drift/compare.ts';
import { coverageOf } from '../../src/drift/coverage.ts';
import { unpaced, type Target } from '../../src/drift/target.ts';
import { openApi31 } from '../../src/sandbox/openapi/document.ts';
import { startSandbox, type RunningSandbox } from '../../src/testing/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';

type Json = Record<string, unknown>;
interface Call {
  readonly route: string;
  readonly url: URL;
  body: Buffer;
  /** Parsed JSON body. Empty if the body is no JSON object. */
  readonly sent: Json;
  /** Number of earlier requests to this route. */
  readonly nth: number;
}
interface Reply {
  status: number;
  headers: Record<string, string>;
  json: unknown;
}
interface Strange {
  /** Changes a request, or answers it in the platform's place. */
  readonly ask?: (call: Call) => Partial<Reply> | undefined | void;
  /** Changes an answer. */
  readonly answer?: (reply: Reply, call: Call) => void;
}

const routes: readonly (readonly [string, RegExp])[] = [
  ['renew', /^POST \/public\/external-app\/token\//],
  ['user', /^GET \/public\/external-app\/user\//],
  ['create', /^POST \/public\/external-app\/operation\//],
  ['operation', /^GET \/public\/external-app\/operation\//],
  ['initiate', /^POST \/public\/external-app\/file\/[^/]+\/upload\/initiate$/],
  ['chunk', /^POST \/public\/external-app\/file\/[^/]+\/upload\/chunk$/],
  ['complete', /^POST \/public\/external-app\/file\/[^/]+\/upload\/complete$/],
  ['direct', /^POST \/public\/file\/upload$/],
  ['generate', /^POST \/public\/file\/generateUploadId$/],
  ['models', /^GET \/public\/inference\/models$/],
  ['inference', /^(POST \/public\/inference\/run|GET \/public\/inference\/status\/)/],
  ['search', /^POST \/public\/stac\/search$/],
  ['items', /^GET \/public\/stac\/collections\/[^/]+\/items$/],
  ['item', /^GET \/public\/stac\/collections\/[^/]+\/items\/[^/]+$/],
  ['conformance', /^GET \/public\/stac\/conformance$/],
  ['preview', /^GET .*preview/],
];

/** A platform that is the sandbox but for one thing: a proxy that knows nothing of the kit. */
async function platformOf(upstream: string, { ask, answer }: Strange): Promise<{ url: string; close: () => void }> {
  const asked = new Map<string, number>();
  const server = createServer((req, res) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of req) parts.push(part as Buffer);
      const url = new URL(req.url ?? '/', upstream);
      const route = routes.find(([, path]) => path.test(`${req.method} ${url.pathname}`))?.[0] ?? 'other';
      const nth = asked.get(route) ?? 0;
      asked.set(route, nth + 1);
      const body = Buffer.concat(parts);
      const sent = parsed(body);
      const call: Call = { route, url, body, nth, sent: isRecord(sent) ? sent : {} };
      const own = ask?.(call);
      if (own) {
        const { status = 400, json = { error: 'Bad Request', code: 'validation_failed', requestId: 'r' } } = own;
        return res
          .writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r', ...own.headers })
          .end(JSON.stringify(json));
      }
      const out = send(url, {
        method: req.method,
        headers: { ...req.headers, host: url.host, 'content-length': call.body.length },
        agent: false,
      });
      out.end(call.body);
      const [came] = (await once(out, 'response')) as [IncomingMessage];
      const bytes: Buffer[] = [];
      for await (const part of came) bytes.push(part as Buffer);
      // Links lead to this platform.
      const address = `http://${req.headers.host}`;
      const isText = /json/.test(came.headers['content-type'] ?? '');
      const raw = isText
        ? Buffer.from(Buffer.concat(bytes).toString().replaceAll(upstream, address))
        : Buffer.concat(bytes);
      const json = parsed(raw);
      const reply: Reply = { status: came.statusCode ?? 0, headers: came.headers as Record<string, string>, json };
      const before = JSON.stringify(reply);
      answer?.(reply, call);
      const isSame = before === JSON.stringify(reply);
      const text =
        isSame || json === undefined
          ? raw
          : Buffer.from(typeof reply.json === 'string' ? reply.json : JSON.stringify(reply.json));
      res.writeHead(reply.status, { ...reply.headers, 'content-length': text.length });
      res.end(text);
    })().catch(() => res.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
const isRecord = (value: unknown): value is Json =>
  value !== null && typeof value === 'object' && !Array.isArray(value);
const isOk = ({ status }: Reply) => status >= 200 && status < 300;

/** Changes the JSON of successful answers of a route. */
const answered = (route: string, change: (json: Json, call: Call) => unknown): Strange => ({
  answer(reply, call) {
    if (call.route !== route || !isOk(reply) || reply.json === undefined) return;
    reply.json = change(reply.json as Json, call) ?? reply.json;
  },
});
const renamed = (route: string, from: string, to: string) =>
  answered(route, (json) => {
    if (!(from in json)) return;
    json[to] = json[from];
    delete json[from];
  });
const without = (route: string, field: string) => answered(route, (json) => void delete json[field]);
/** Refuses requests of a route. */
const refusing = (route: string, when: (call: Call) => boolean, status = 400): Strange => ({
  ask: (call) => (call.route === route && when(call) ? { status } : undefined),
});
/** Takes in its own way what the sandbox refuses. */
const taking = (route: string, when: (call: Call) => boolean, json: unknown, status = 200): Strange => ({
  ask: (call) => (call.route === route && when(call) ? { status, json } : undefined),
});
const text = (call: Call) => call.body.toString('latin1');
const features = (json: Json) => (json['features'] as Json[] | undefined) ?? [];
/** Changes every item of a list, or an item alone. */
const items = (change: (item: Json) => void): Strange => ({
  answer(reply, { route }) {
    if (!isOk(reply) || !['item', 'items', 'search'].includes(route)) return;
    const json = reply.json as Json;
    for (const item of route === 'item' ? [json] : features(json)) change(item);
  },
});
const page = {
  type: 'FeatureCollection',
  features: [],
  links: [],
  numberMatched: 0,
  numberReturned: 0,
  limit: 1,
  offset: 0,
};
const depthOf = (json: unknown): number => (isRecord(json) ? 1 + Math.max(0, ...Object.values(json).map(depthOf)) : 0);

/** Differences, each with the assumption or the section of the specification that must be blamed, and the platform that has it. */
const differences: readonly (readonly [what: string, blamed: string, Strange])[] = [
  ['user details in an envelope', 'user-detail', answered('user', (json) => ({ data: json }))],
  ['no e-mail address', 'user-detail', without('user', 'email')],
  ['a first and a last name', 'user-detail', answered('user', ({ name, ...rest }) => ({ ...rest, firstName: name, lastName: 'x' }))],
  ['the operation under `id`', '4.8', renamed('create', 'operationId', 'id')],
  ['201 for a new operation that was 200, or the other way', 'created-operation', { answer: (reply, { route }) => void (route === 'create' && isOk(reply) && (reply.status = reply.status === 201 ? 200 : 201)) }],
  ['no end of a new operation', 'created-operation', without('create', 'expiresAt')],
  ['operations need a title', 'operation-request', refusing('create', ({ sent }) => !('title' in sent))],
  ['operations need a type', 'operation-request', refusing('create', ({ sent }) => !('operationType' in sent), 422)],
  ['a key that is used again is ignored', 'idempotency-key', answered('create', (json, { nth }) => void (nth === 1 && (json['operationId'] = 'op_another')))],
  ['a key that is used again is a conflict', 'idempotency-key', refusing('create', ({ nth }) => nth === 1, 409)],
  ['a long name of an operation', 'operation-name-length', taking('create', ({ sent }) => String(sent['name']).length > 200, { operationId: 'o' })],
  ['large parameters', 'operation-parameters-size', taking('create', ({ body }) => body.length > 60_000, { operationId: 'o' })],
  ['no name in the status', 'operation-status', without('operation', 'name')],
  ['other words of the status', '4.8', answered('operation', (json) => void (json['status'] = String(json['status']).toLowerCase()))],
  ['the new token under another name', 'renewed-token', renamed('renew', 'token', 'identityToken')],
  ['no end of the new token', 'renewed-token', without('renew', 'expiresAt')],
  ['a token lives half as long', 'token-life', answered('renew', (json) => void (json['expiresAt'] = new Date(Date.now() + 30 * 60_000).toISOString()))],
  ['uploads begin with `name`', 'initiate-request', refusing('initiate', ({ sent }) => !('name' in sent))],
  ['the upload under `upload_id`', '4.8', renamed('initiate', 'uploadId', 'upload_id')],
  ['one upload for an operation', 'several-uploads', refusing('initiate', ({ nth }) => nth > 1, 409)],
  ['another field of the file', 'chunk-request', refusing('chunk', (call) => !text(call).includes('name="chunk"'))],
  ['a count of parts', 'chunk-request', refusing('chunk', (call) => !text(call).includes('name="totalParts"'))],
  ['parts from 0', 'first-part', { ask: (call) => (call.route === 'chunk' ? numberedFrom0(call) : undefined) }],
  ['chunks are answered by nothing', 'chunk-answer', answered('chunk', () => ({}))],
  ['many parts', 'most-parts', taking('chunk', (call) => text(call).includes('10001'), {})],
  ['completions need a count', 'completion', refusing('complete', ({ sent }) => !('totalParts' in sent))],
  ['the file under `id`', 'completion', renamed('complete', 'fileId', 'id')],
  ['a file that comes later', 'completion', { answer: (reply, { route }) => void (route === 'complete' && isOk(reply) && Object.assign(reply, { status: 202, json: { status: 'PROCESSING' } })) }],
  ['messages under another name', 'error-body', { answer: (reply) => void (reply.status >= 400 && isRecord(reply.json) && (reply.json = { message: reply.json['error'], code: reply.json['code'], requestId: 'r' })) }],
  ['errors in plain text', 'error-body', { answer: (reply) => void (reply.status >= 400 && Object.assign(reply, { json: 'no', headers: { ...reply.headers, 'content-type': 'text/plain' } })) }],
  ['other codes', 'error-body', { answer: (reply) => void (reply.status >= 400 && isRecord(reply.json) && (reply.json['code'] = 'E-1')) }],
  ['bands under another name', 'item-bands', items((item) => renameAt(item['properties'], ['eo:bands', 'bands'], 'layers'))],
  ['no shape', 'item-shape', items((item) => void delete (item['properties'] as Json)['proj:shape'])],
  ['no raster itself', 'item-raster', items((item) => void delete (item['assets'] as Json)['raster'])],
  ['items are found by title alone', '4.1', refusing('item', ({ nth }) => nth === 0, 404)],
  ['no count of what matches', '4.2', without('search', 'numberMatched')],
  ['pages of three', 'page-size', answered('search', (json, { sent }) => void ('limit' in sent || 'ids' in sent || Object.assign(json, { features: features(json).slice(0, 3), numberReturned: 3 })))],
  ['no large pages', 'page-size', refusing('search', ({ sent }) => Number(sent['limit']) > 1_000, 413)],
  ['both ends of an interval', 'open-interval', refusing('search', ({ sent }) => String(sent['datetime']).includes('..'))],
  ['ids are ignored', 'search-extras', { ask: (call) => withoutField(call, 'ids') }],
  ['a filter is ignored', 'search-extras', { ask: (call) => withoutField(call, 'filter') }],
  ['no areas', 'search-extras', refusing('search', ({ sent }) => 'intersects' in sent && JSON.stringify(sent['intersects']).length < 1_000)],
  ['lists without pages', 'items-query', { ask: ({ url, route }) => void (route === 'items' && url.searchParams.delete('offset')) }],
  ['lists with any parameter', 'items-query', { ask: ({ url }) => void url.searchParams.delete('drift') }],
  ['no conformance classes', 'standard-paths', refusing('conformance', () => true, 404)],
  ['large previews', 'preview-size', taking('preview', ({ url }) => Number(url.searchParams.get('width')) > 1_024, {})],
  ['long JSON', 'json-size', taking('search', ({ body }) => body.length > 1_000_000, page)],
  ['deep JSON', 'json-depth', taking('search', ({ sent }) => depthOf(sent) > 400, page)],
  ['areas of many positions', 'geometry-positions', taking('search', ({ body, sent }) => 'intersects' in sent && body.length > 10_000, page)],
  ['other words of a task', 'inference-types', { answer: (reply, { route }) => void (route === 'models' && isOk(reply) && (reply.json as Json[]).forEach((model) => (model['type'] = String(model['type']).toLowerCase()))) }],
]; // oxfmt-ignore

function renameAt(object: unknown, from: readonly string[], to: string): void {
  const own = object as Json;
  for (const name of from) {
    if (name in own) own[to] = own[name];
    delete own[name];
  }
}

function withoutField(call: Call, field: string): void {
  if (call.route !== 'search' || !(field in call.sent)) return;
  const rest = Object.entries(call.sent).filter(([name]) => name !== field);
  call.body = Buffer.from(JSON.stringify(Object.fromEntries(rest)));
}

/** A platform that counts from 0 takes part 0 as the sandbox's part 1. */
function numberedFrom0(call: Call): Partial<Reply> | undefined {
  const [, before = '', number = ''] = /^([\s\S]*name="partNumber"\r\n\r\n)(\d+)/.exec(text(call)) ?? [];
  const isFirst = !begun.has(call.body.length);
  if (number === '1' && isFirst) return { status: 400 };
  begun.add(call.body.length);
  call.body = Buffer.from(`${before}${Number(number) + 1}${text(call).slice(before.length + number.length)}`, 'latin1');
  return undefined;
}
const begun = new Set<number>();

let sandbox: RunningSandbox;
let expected: Observations;
const targetAt = (url: string): Target => {
  let token: Promise<string> | null = null;
  return {
    ...{ url, apiKey: sandbox.apiKey, profile: assumedProfile, pace: unpaced },
    token: () => (token ??= sandbox.launch('http://127.0.0.1:9/launch').then((launch) => launch.token)),
    approve: async (operationId) => void (await sandbox.approve(operationId).catch(() => {})),
  };
};

beforeAll(async () => {
  const permissions = ['external_app', 'files_admin', 'files_upload', 'inference'] as const;
  sandbox = await startSandbox({ permissions, seed: 'demo' });
  cleanUpLater(() => sandbox.close());
  expected = await observe(targetAt(sandbox.url), 'write');
}, 900_000);

/** The first item of the catalog has a raster for each band, and no `raster`, so nobody can see that it is missing. */
const unseen: readonly string[] = ['no raster itself'];

test.each(differences)('%s is blamed on %s alone', { timeout: 900_000 }, async (what, blamed, strange) => {
  begun.clear();
  const platform = await platformOf(sandbox.url, strange);
  cleanUpLater(platform.close);
  const found = await observe(targetAt(platform.url), 'write');
  platform.close();
  const told = compare(expected, found).filter(({ verdict }) => verdict !== 'richer');
  const all = [...new Set(told.map(({ assumption, section }) => assumption ?? section ?? 'nothing'))];
  expect(all, JSON.stringify(told.map(({ exchange, fact, section }) => [exchange, fact, section]))).toEqual(
    unseen.includes(what) ? [] : [blamed],
  );
  const accused = judge(found, expected, told).filter(({ verdict }) => ['differs', 'breaks the app'].includes(verdict));
  const neighbours = accused.map(({ id }) => id as string).filter((id) => id !== blamed);
  expect(neighbours).toEqual([]);
});

test('there are fifty', () => {
  expect(differences).toHaveLength(50);
});

test('a platform with a profile of every kind of difference is compared to the end', { timeout: 900_000 }, async () => {
  const profile = wireProfile(strangeProfile);
  const own = await startSandbox({
    permissions: ['external_app', 'files_admin', 'files_upload', 'inference'],
    seed: 'demo',
    profile,
  });
  cleanUpLater(() => own.close());
  let token: Promise<string> | null = null;
  const found = await observe(
    {
      ...{ url: own.url, apiKey: own.apiKey, profile, pace: { requestMs: 0, pollMs: 50 } },
      token: () => (token ??= own.launch('http://127.0.0.1:9/launch').then((launch) => launch.token)),
      approve: async (operationId) => void (await own.approve(operationId)),
    },
    'write',
  );
  expect(unmadeOf(found, 'write')).toEqual([]);
  expect(found.exchanges.filter(({ unreadable }) => unreadable !== null).map(({ name }) => name)).toEqual([]);
});

test('a refusal of a call that the key of the app may not make breaks nothing', { timeout: 900_000 }, async () => {
  const platform = await platformOf(
    sandbox.url,
    refusing('models', () => true, 403),
  );
  cleanUpLater(platform.close);
  const verdictOf = async (permissions: Target['permissions'] & {}) => {
    const ours = await observe({ ...targetAt(sandbox.url), permissions }, 'read');
    const found = await observe({ ...targetAt(platform.url), permissions }, 'read');
    return compare(ours, found).find(({ exchange, fact }) => exchange === 'list-models/all' && fact === 'status')
      ?.verdict;
  };
  expect(await verdictOf(['external_app'])).toBe('differs');
  expect(await verdictOf(['external_app', 'inference'])).toBe('breaks the app');
});

test('a call on another path of a profile counts as called', () => {
  const { exchanges } = expected;
  const document = openApi31('http://sandbox');
  const moved = exchanges.map((one) => (one.call === 'userDetail' ? { ...one, path: '/v2/whoami' } : one));
  expect(coverageOf(moved, document)).toEqual(coverageOf(exchanges, document));
});
