/** `npm run lab -- --expose-gc lab/drill/fuzz.ts [--seconds N] [--seed S]`: odd requests, by the platform's OpenAPI document and the app's routes, to a sandbox and an app in this process. */
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import myApp from '../../src/my-app/app.ts';
import { openLaunch, startApp, startSandbox } from '../../src/testing/index.ts';

export interface FuzzOptions {
  readonly seconds: number;
  /** The same seed sends the same requests. */
  readonly seed: number;
}

export interface FuzzResult {
  readonly requests: number;
  /** Number of answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly slowestMs: number;
  /** Bytes of the heap and of buffers at the end beyond those after the first requests, garbage collected. */
  readonly grownBytes: number;
  /** Faults, each with the request that shows it. */
  readonly faults: readonly string[];
}

/** A plain call beside a request is answered within this. */
const besideMs = 2_000;
/** A request is answered within this: a search gives up after 10 s. */
const boundMs = 15_000;
/** A request whose answer never comes. Until then the time counts only if this process computed meanwhile: the machine may be busy. */
const hangMs = 180_000;
/** Memory that caches may hold after a while, without what the allocator keeps. */
const maxGrownBytes = 50 * 1024 * 1024;
/** A search may give up, and a disk may be full: answers of the interface, not of a mistake. */
const honest5xx = new Set([503, 507]);

interface Operation {
  readonly method: string;
  /** `{name}` for each parameter. */
  readonly path: string;
  readonly query: readonly string[];
  readonly mediaTypes: readonly string[];
  readonly server: 'platform' | 'app';
}

interface FuzzedRequest {
  readonly operation: Operation;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly parameters?: readonly { readonly name: string; readonly in: string }[];
            readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
          }
        >
      >
    >
  >;
}

/** Operations of the platform. Control calls that end what is being tested are left out. */
function platformOperations(): Operation[] {
  const document = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as Document;
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => ['get', 'post', 'put', 'patch', 'delete', 'head'].includes(method))
      .filter(() => !/\/sandbox\/(reset|rate-limit|faults|clock|keys)/.test(path))
      .map(([method, { parameters = [], requestBody }]) => ({
        method: method.toUpperCase(),
        path,
        query: parameters.filter((one) => one.in === 'query').map(({ name }) => name),
        mediaTypes: Object.keys(requestBody?.content ?? {}),
        server: 'platform' as const,
      })),
  );
}

const jsonType = ['application/json'];
const app = (method: string, path: string, mediaTypes: readonly string[] = [], query: readonly string[] = []) =>
  ({ method, path, query, mediaTypes, server: 'app' }) as const;
const appOperations: readonly Operation[] = [
  app('GET', '/', [], ['token']),
  app('GET', '/manifest'),
  app('GET', '/launch', [], ['token', 'collectionId', 'itemId']),
  app('POST', '/launch', ['application/x-www-form-urlencoded']),
  app('GET', '{home}', [], ['show', 'before']),
  app('GET', '{home}new/{id}', [], ['from']),
  app('GET', '{home}runs/{id}'),
  app('GET', '{home}api/launch'),
  app('GET', '{home}api/steps'),
  app('GET', '{home}api/inputs'),
  app('GET', '{home}api/collections'),
  app('GET', '{home}api/runs', [], ['limit', 'before']),
  app('POST', '{home}api/runs', jsonType),
  app('POST', '{home}api/runs/check', jsonType),
  app('POST', '{home}api/items/search', jsonType),
  app('GET', '{home}api/runs/{id}'),
  app('GET', '{home}api/runs/{id}/result'),
  app('GET', '{home}api/runs/{id}/picture.png'),
  app('POST', '{home}api/runs/{id}/cancel', jsonType),
  app('POST', '{home}api/runs/{id}/retry', jsonType),
];

/** Text that parsers trip over, or any. */
const oddText = fc.oneof(
  fc.constantFrom(
    ...['', '.', '..', '%', '%00', '\u0000', '__proto__', 'constructor', '-1', '1e999', 'NaN', '9'.repeat(400)],
    ...['a'.repeat(5_000), '\ud800', '\u202e', '{token}', '../../etc/passwd', '2020-01-01T00:00:00Z/..', '0,0,1,1'],
    ...['POLYGON((0 0,1 0,1 1,0 0))', 'GEOMETRYCOLLECTION('.repeat(500), '[1,2', '/vsicurl/http://127.0.0.1/'],
  ),
  fc.string({ unit: 'binary', maxLength: 60 }),
);
const deepJson = fc
  .tuple(fc.constantFrom('[', '{"a":'), fc.nat({ max: 20_000 }))
  .map(([open, depth]) => open.repeat(depth) + '0' + (open === '[' ? ']' : '}').repeat(depth));
const oddJson = fc.oneof(
  fc.json({ maxDepth: 5 }),
  deepJson,
  fc.record({ name: oddText, parameters: fc.object(), operationId: oddText, fileName: oddText, uploadId: oddText, key: oddText, fileSize: fc.double(), sourceType: oddText }, { requiredKeys: [] }).map((value) => JSON.stringify(value)), // oxfmt-ignore
  fc.record({ collections: fc.array(oddText), bbox: fc.array(fc.double(), { maxLength: 7 }), datetime: oddText, limit: fc.double(), sortby: fc.anything(), fields: fc.anything(), filter: fc.object(), intersects: fc.record({ type: fc.constantFrom('Point', 'Polygon', 'GeometryCollection'), coordinates: fc.anything(), geometries: fc.array(fc.anything()) }, { requiredKeys: [] }) }, { requiredKeys: [] }).map((value) => JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one))), // oxfmt-ignore
  fc.record({ stepId: fc.constantFrom('cog', 'ndvi', 'nope'), parameters: fc.object(), input: fc.anything() }).map((value) => JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one))), // oxfmt-ignore
);
const form = fc.array(fc.tuple(fc.constantFrom('uploadId', 'key', 'partNumber', 'file', 'modelId', 'fileId', 'token', 'fileName'), oddText), { maxLength: 6 }); // oxfmt-ignore

function bodyOf(mediaType: string): fc.Arbitrary<Buffer> {
  if (mediaType.includes('json')) return oddJson.map((text) => Buffer.from(text));
  if (mediaType.includes('urlencoded'))
    return form.map((fields) => Buffer.from(new URLSearchParams(fields).toString()));
  if (mediaType.includes('multipart'))
    return fc.tuple(form, fc.uint8Array({ maxLength: 3_000 }), fc.boolean()).map(([fields, bytes, isWhole]) =>
      Buffer.concat([
        ...fields.map(([name, value]) => Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)),
        Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a.tif"\r\n\r\n'),
        bytes,
        Buffer.from(isWhole ? '\r\n--b--\r\n' : ''),
      ]),
    ); // oxfmt-ignore
  return fc.uint8Array({ maxLength: 3_000 }).map((bytes) => Buffer.from(bytes));
}

function requests(known: { readonly tokens: readonly string[]; readonly home: string }): fc.Arbitrary<FuzzedRequest> {
  const segment = fc.oneof(oddText, fc.constantFrom(...known.tokens));
  return fc.constantFrom(...platformOperations(), ...appOperations).chain((operation) => {
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const mediaType = operation.mediaTypes[0] ?? null;
    return fc
      .record({
        values: fc.tuple(...names.map((name) => (name === 'home' ? fc.constant(known.home) : segment))),
        query: fc.array(fc.tuple(fc.oneof(fc.constantFrom(...operation.query, 'extra'), oddText), oddText), { maxLength: 4 }), // oxfmt-ignore
        body: mediaType === null ? fc.constant(null) : fc.option(bodyOf(mediaType)),
        type: fc.oneof({ weight: 9, arbitrary: fc.constant(mediaType) }, { weight: 1, arbitrary: fc.constantFrom('text/plain', 'application/json', 'multipart/form-data') }), // oxfmt-ignore
      })
      .map(({ values, query, body, type }) => {
        let at = 0;
        const path = operation.path.replaceAll(/\{\w+\}/g, (name) => {
          const value = values[at++] ?? '';
          return name === '{home}' ? value : encodeURIComponent(value.toWellFormed());
        });
        const search = new URLSearchParams(query.map(([name, value]): [string, string] => [name.toWellFormed(), value.toWellFormed()])).toString();
        const headers: Record<string, string> =
          type === null ? {} : { 'content-type': type.startsWith('multipart') ? `${type}; boundary=b` : type };
        return { operation, path: search === '' ? path : `${path}?${search}`, headers, body };
      }); // oxfmt-ignore
  });
}

/** Sends odd requests for so long, and collects what was wrong. */
export async function fuzz({ seconds, seed }: FuzzOptions): Promise<FuzzResult> {
  await using platform = await startSandbox({
    seed: 'demo',
    permissions: ['external_app', 'files_admin', 'files_upload', 'inference'],
  });
  await using running = await startApp(myApp, { platform });
  const { launchUrl } = await platform.launch(running.launchUrl);
  const session = await openLaunch(launchUrl);
  const { token } = await platform.launch(running.launchUrl);
  const known = {
    tokens: [token, 'cog', 'ndvi', 'coastal-optical'],
    home: `${new URL(session.home).pathname}/`.replace('//', '/'),
  };
  const statuses: Record<string, number> = {};
  const faults: string[] = [];
  let [count, slowestMs, restBytes] = [0, 0, 0];
  const until = performance.now() + seconds * 1_000;
  const drawn = requests(known);
  for (let round = 0; performance.now() < until && faults.length < 10; round++) {
    for (const one of fc.sample(drawn, { seed: seed + round, numRuns: 50 })) {
      if (performance.now() > until) break;
      const base = one.operation.server === 'platform' ? platform.url : running.url;
      const own: Record<string, string> =
        one.operation.server === 'platform' ? { 'x-api-key': platform.apiKey } : { cookie: session.cookie };
      const [began, cpuBegan] = [performance.now(), process.cpuUsage()];
      const [status, healthMs] = await Promise.all([send(base, one, own), timeOf(`${base}/health`)]);
      const tookMs = performance.now() - began;
      const { user, system } = process.cpuUsage(cpuBegan);
      const computedMs = (user + system) / 1_000;
      slowestMs = Math.max(slowestMs, tookMs);
      statuses[status] = (statuses[status] ?? 0) + 1;
      count += 1;
      const shown = `${one.operation.method} ${one.path.slice(0, 300)} (seed ${seed + round}) ${one.body?.subarray(0, 300).toString() ?? ''}`;
      if (status >= 500 && !honest5xx.has(status)) faults.push(`answered ${status}: ${shown}`);
      const isLate = (ms: number, bound: number) => ms > hangMs || (ms > bound && computedMs > bound);
      if (isLate(tookMs, boundMs) || isLate(healthMs, besideMs)) faults.push(`took ${tookMs.toFixed(0)} ms, ${computedMs.toFixed(0)} ms of them computing, /health beside it ${healthMs.toFixed(0)} ms: ${shown}`); // oxfmt-ignore
    }
    if (round === 4) restBytes = await restingBytes();
  }
  const grownBytes = restBytes === 0 ? 0 : (await restingBytes()) - restBytes;
  if (grownBytes > maxGrownBytes) faults.push(`holds ${grownBytes} bytes more than after the first requests`);
  return { requests: count, statuses, slowestMs, grownBytes, faults };
}

/** The status; 0 where the server ended the connection, which it may. */
function send(
  base: string,
  { operation, path, headers, body }: FuzzedRequest,
  own: Record<string, string>,
): Promise<number> {
  return new Promise((resolve) => {
    const sent = httpRequest(`${base}${path}`, { method: operation.method, headers: { ...headers, ...own, ...(body && { 'content-length': body.length }) } }, (res) => {
      res.resume();
      res.once('close', () => resolve(res.statusCode ?? 0));
      // A stream of events does not end by itself.
      setTimeout(() => res.destroy(), 200).unref();
    }); // oxfmt-ignore
    sent.setTimeout(hangMs, () => sent.destroy());
    sent.once('error', () => resolve(0));
    sent.end(body ?? undefined);
  });
}

async function timeOf(url: string): Promise<number> {
  const began = performance.now();
  await fetch(url).then((res) => res.arrayBuffer());
  return performance.now() - began;
}

async function restingBytes(): Promise<number> {
  globalThis.gc?.();
  await new Promise((resolve) => setTimeout(resolve, 500));
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' }, help: { type: 'boolean' } },
  });
  if (values.help) {
    console.log(`usage: npm run lab -- --expose-gc lab/drill/fuzz.ts [--seconds N] [--seed S]: sends odd requests to a sandbox and an app

  --seconds N  Seconds to go on (default: 60).
  --seed S     Whole number that the requests are drawn from (default: a random one, printed).

Exits 1 if an answer is 5xx, a request takes more than ${boundMs / 1_000} s, a plain call beside it more than ${besideMs / 1_000} s (not counting a busy machine), or memory does not come back.`);
  } else {
    const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
    console.log(`seed ${seed}`);
    const { faults, ...told } = await fuzz({ seconds: Number(values.seconds), seed });
    console.log(JSON.stringify(told));
    faults.forEach((fault) => console.log(`FAULT ${fault}`));
    console.log(faults.length === 0 ? 'no fault' : `${faults.length} faults`);
    process.exitCode = faults.length === 0 ? 0 : 1;
    // Connections that fuzzed requests left half open.
    process.exit();
  }
}
