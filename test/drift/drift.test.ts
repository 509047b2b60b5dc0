// @module-tag all
/** Drift finds and names the differences of a strange platform, and reports none for a platform like the sandbox. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { assumedProfile, assumptions, wireProfile, type WireCallName } from '../../src/contract/index.ts';
import { compare, judge, observe, unmadeOf, type Observations } from '../../src/drift/compare.ts';
import { probes } from '../../src/drift/probes.ts';
import { withoutKnown } from '../../src/drift/report.ts';
import { unpaced, type Exchange, type Target } from '../../src/drift/target.ts';
import myApp from '../../src/my-app/app.ts';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { deliver, startApp, startSandbox, type RunningSandbox } from '../../src/testing/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot } from '../support/folders.ts';
import { changeAt, pathOf, strangePlatform, type Change, type Route } from '../support/strange-platform.ts';

/** Drift looks at every group of calls. */
const permissions = ['external_app', 'files_admin', 'files_upload', 'inference'] as const;

/** The whole are 200: DRIFT_CHANGES=200 npx vitest run test/drift */
const changeCount = Number(process.env['DRIFT_CHANGES'] ?? 24);
const cleanRuns = changeCount >= 200 ? 20 : 2;

let platform: RunningSandbox;
let expected: Observations;

const noApp = 'http://127.0.0.1:9/launch';
function targetAt(url: string, profile = assumedProfile): Target {
  let token: Promise<string> | null = null;
  return {
    url,
    apiKey: platform.apiKey,
    profile,
    pace: unpaced,
    token: () => (token ??= platform.launch(noApp).then((launch) => launch.token)),
    approve: async (operationId) => void (await platform.approve(operationId)),
  };
}

beforeAll(async () => {
  platform = await startSandbox({ permissions, seed: 'demo' });
  cleanUpLater(() => platform.close());
  expected = await observe(targetAt(platform.url), 'write');
}, 900_000);

async function seenThrough(changes: Parameters<typeof strangePlatform>[1], profile = assumedProfile) {
  const strange = await strangePlatform(platform.url, changes);
  try {
    return await observe(targetAt(strange.url, profile), 'write');
  } finally {
    await strange.close();
  }
}

/** Every call of the interface, with the files that say how it is. */
const routes: readonly (Route & { readonly files: RegExp; readonly call: WireCallName | null })[] = (
  [
    ['POST', '/external-app/token/[^/]+/renew', 'renew-token|limits', 'renewToken'],
    ['GET', '/external-app/user/[^/]+/detail', 'user-detail', 'userDetail'],
    ['POST', '/external-app/operation/[^/]+', 'create-operation|limits', 'createOperation'],
    ['GET', '/external-app/operation/[^/]+', 'get-operation|create-operation', 'getOperation'],
    ['POST', '/external-app/file/[^/]+/upload/initiate', 'initiate-upload|wire-profile', 'initiateUpload'],
    ['POST', '/external-app/file/[^/]+/upload/chunk', 'upload-chunk|limits', 'uploadChunk'],
    ['POST', '/external-app/file/[^/]+/upload/complete', 'complete-upload', 'completeUpload'],
    ['GET', '/file/status/[^/]+', 'get-file-status|file-kinds', 'getFileStatus'],
    ['GET', '/file/download/url', 'get-download-url', 'getDownloadUrl'],
    ['POST', '/file/upload', 'upload-file', null],
    ['POST', '/file/generateUploadId', 'generate-upload-id|file|limits', 'generateUploadId'],
    ['POST', '/file/uploadChunk', 'upload-file-chunk|upload-chunk|limits', 'uploadFileChunk'],
    ['POST', '/file/completeUpload', 'complete-file-upload|file-geometry|limits', 'completeFileUpload'],
    ['GET', '/inference/models', 'list-models|inference', 'listModels'],
    ['POST', '/inference/run', 'run-inference|inference', 'runInference'],
    ['GET', '/inference/status', 'get-inference-status|inference', 'getInferenceStatus'],
    ['GET', '/stac/', 'get-catalog|read-catalog|objects', 'getCatalog'],
    ['GET', '/stac/collections/[^/]+', 'get-collection|read-catalog|objects', 'getCollection'],
    ['GET', '/stac/collections/[^/]+/items', 'objects|search-request', null],
    ['GET', '/stac/collections/[^/]+/items/[^/]+', 'get-item|read-catalog|objects', 'getItem'],
    ['POST', '/stac/search', 'search-items|read-catalog|search-request|limits|datetime-interval', 'searchItems'],
  ] as const
).map(([method, path, files, call]) => ({
  method,
  path: new RegExp(`^/public${path}$`),
  files: new RegExp(`/(${files})\\.ts$`),
  call,
}));

const random = (seed: number) => {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), state | 1) + 0x6d2b79f5) | 0;
    return ((state ^ (state >>> 14)) >>> 0) / 4_294_967_296;
  };
};

const answersOf = ({ method, path }: Route, on: 'success' | 'error') =>
  expected.exchanges.filter(
    (one) =>
      one.method === method &&
      path.test(one.path.split('?')[0]!) &&
      (on === 'success') === /^2/.test(one.facts['status']!),
  );

interface Case {
  readonly route: (typeof routes)[number];
  readonly change: Change;
  readonly title: string;
}

/** One change by a seed. */
function changeOf(seed: number): Case {
  const next = random(seed);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(next() * all.length)]!;
  for (;;) {
    const route = pick(routes);
    const kind = pick(['rename', 'rename', 'drop', 'drop', 'retype', 'retype', 'word', 'status', 'redirect', 'header', 'plain', 'query'] as const); // oxfmt-ignore
    const on =
      kind === 'plain' ? 'error' : ['word', 'redirect', 'query'].includes(kind) || next() < 0.75 ? 'success' : 'error';
    const answers = answersOf(route, on);
    if (answers.length === 0) continue;
    // Changes of free content are no change of the interface: a link's title, a list of detail, a band's name.
    const fields = [...new Set(answers.flatMap(({ facts }) => Object.keys(facts)))].filter(
      (fact) =>
        fact.startsWith('body.') &&
        !fact.endsWith('[]') &&
        !/\.(links|details|geometry|eo:|view:|proj:|raster)|shape|bands|properties\.[a-z]+:/.test(fact),
    );
    const json = fields.map((fact) => fact.slice('body.'.length));
    const words = json.filter((field) => answers.some(({ facts }) => facts[`body.${field}`] === 'word'));
    const made = ((): Change | null => {
      switch (kind) {
        case 'rename':
        case 'drop':
        case 'retype':
          return json.length === 0 ? null : { kind, on, field: pick(json) };
        case 'word':
          return words.length === 0 ? null : { kind, on: 'success', field: pick(words) };
        case 'status':
          return { kind, on, status: on === 'success' ? pick([201, 409, 500, 503]) : pick([422, 500, 409]) };
        case 'redirect':
          return { kind, on: 'success' };
        case 'header':
          return { kind, on, ...pick([{ name: 'x-request-id', value: null }, { name: 'content-type', value: 'text/html' }, { name: 'set-cookie', value: 'a=b' }]) }; // oxfmt-ignore
        case 'plain':
          return { kind, on: 'error' };
        case 'query':
          return route.path.source.includes('search') || route.path.source.endsWith('items$')
            ? { kind, on: 'success', field: pick(['offset', 'limit']) }
            : null;
      }
    })();
    if (made) return { route, change: made, title: `${route.method} ${route.path.source} ${JSON.stringify(made)}` };
  }
}

/** The answer can no longer be read by the profile, or is no success: judged on the bodies that the sandbox gave, not by drift. */
function breaksTheApp({ route, change }: Case): boolean {
  if (route.call === null || change.on === 'error') return false;
  if (change.kind === 'redirect') return true;
  if (change.kind === 'status') return change.status > 299;
  if (!['rename', 'drop', 'retype', 'word'].includes(change.kind)) return false;
  const wireCall = assumedProfile.calls[route.call] as { decode(body: unknown): unknown };
  return answersOf(route, 'success').some(({ responseBody, call }) => {
    if (call === null) return false;
    let body: unknown;
    try {
      body = JSON.parse(responseBody);
    } catch {
      return false;
    }
    changeAt(body, pathOf((change as { field: string }).field), change);
    try {
      wireCall.decode(body);
      return false;
    } catch {
      return true;
    }
  });
}

const seeds = Array.from({ length: changeCount }, (_, i) => [i + 1] as const);

describe('a single change', () => {
  const results: { one: Case; found: boolean; breaks: boolean; said: boolean; isNamed: boolean }[] = [];
  test.each(seeds)('by seed %i', { timeout: 900_000 }, async (seed) => {
    const one = changeOf(seed);
    const differences = compare(expected, await seenThrough([one]));
    const told = differences.filter(({ verdict }) => verdict !== 'richer');
    const files =
      one.change.on === 'error' ? new RegExp(`${one.route.files.source}|/(error-codes|limits)\\.ts$`) : one.route.files;
    results.push({
      one,
      found: told.length > 0,
      breaks: breaksTheApp(one),
      said: told.some(({ verdict }) => verdict === 'breaks the app'),
      isNamed: told.some(({ place }) => files.test(`/${place.file}`)),
    });
  });

  test('all that break the app are found and said to; of the others 95 of 100, and the place of as many', () => {
    expect(results).toHaveLength(changeCount);
    const breaking = results.filter(({ breaks }) => breaks);
    expect(breaking.filter(({ said }) => !said).map(({ one }) => one.title)).toEqual([]);
    expect(breaking.length).toBeGreaterThan(changeCount / 12);
    const missed = results.filter(({ found }) => !found).map(({ one }) => one.title);
    expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(changeCount * 0.05);
    const elsewhere = results.filter(({ found, isNamed }) => found && !isNamed).map(({ one }) => one.title);
    expect(elsewhere.length, elsewhere.join('\n')).toBeLessThanOrEqual(changeCount * 0.05);
  });
});

test.each(Array.from({ length: cleanRuns }, (_, i) => [i + 1]))(
  'clean run %i: nothing is found',
  { timeout: 900_000 },
  async () => {
    const seen = await seenThrough([]);
    expect(compare(expected, seen)).toEqual([]);
    const judged = judge(seen, expected, []);
    expect(judged.filter(({ verdict }) => verdict !== 'same').every(({ verdict, reason }) => verdict === 'not observed' && reason!.startsWith('by hand'))).toBe(true); // oxfmt-ignore
  },
);

test('a level sends no more than it says', { timeout: 900_000 }, async () => {
  const seen = await observe(targetAt(platform.url), 'read');
  const others = seen.exchanges.filter(
    ({ method, path }) => method !== '' && method !== 'GET' && !(method === 'POST' && path === '/public/stac/search'),
  );
  expect(others).toEqual([]);
  const judged = judge(seen, expected, []);
  expect(judged.find(({ id }) => id === 'user-detail')).toMatchObject({
    verdict: 'not observed',
    reason: 'it needs --level launch',
  });
});

test.each([
  [
    'under another name breaks the app',
    'token',
    [['the token after it', 'is in the answer under a name that the wire profile does not read', 'breaks the app']],
  ],
  ['without an end says nothing of its life', 'expiresAt', []],
])('a renewed token %s', { timeout: 900_000 }, async (_what, field, wanted) => {
  const route = { method: 'POST', path: /\/token\/[^/]+\/renew$/ };
  const strange = await strangePlatform(platform.url, [{ route, change: { kind: 'rename', on: 'success', field } }]);
  const launch = platform.launch(noApp, { renewPolicy: 'rotate' });
  const target = { ...targetAt(strange.url), token: async () => (await launch).token };
  const seen = await observe(target, 'launch').finally(() => strange.close());
  const own = compare(expected, seen).filter(({ exchange }) =>
    /^renew-token\/(renewed-token|token-life)$/.test(exchange),
  );
  const told = own.map(({ fact, found, verdict }) => [fact, found, verdict]);
  expect(told).toEqual(wanted);
});

test('a key that is refused: nothing is called the same', { timeout: 900_000 }, async () => {
  const seen = await observe({ ...targetAt(platform.url), apiKey: 'wrong' }, 'read');
  const judged = judge(seen, expected, compare(expected, seen));
  for (const id of ['model-fields', 'inference-types', 'page-size', 'item-bands'])
    expect(judged.find((one) => one.id === id)?.verdict, id).not.toBe('same');
});

test('who rejects is written nothing more', { timeout: 900_000 }, async () => {
  const seen = await observe(
    { ...targetAt(platform.url), approve: async (operationId) => void (await platform.reject(operationId)) },
    'write',
  );
  const written = seen.exchanges.filter(({ method, path }) => method === 'POST' && /file\/|inference\/run/.test(path));
  expect(written.map(({ name }) => name)).toEqual(['get-operation/upload before the approval']);
  expect(compare(expected, seen)).toEqual([]);
  expect(unmadeOf(seen, 'write')).toContain('approval: the operation is REJECTED: nothing more is written');
});

test('no key, token or signature is in what was seen', async () => {
  const text = JSON.stringify(expected);
  expect(text).not.toContain(platform.apiKey);
  expect(text).toContain('[redacted]');
  expect(text).not.toMatch(/signature=(?!\[redacted\])/);
});

const renamed: readonly (readonly [Exclude<WireCallName, 'downloadInference'>, string])[] = [
  ['renewToken', 'token'],
  ['renewToken', 'expiresAt'],
  ['userDetail', 'id'],
  ['userDetail', 'email'],
  ['userDetail', 'name'],
  ['userDetail', 'organization'],
  ['createOperation', 'operationId'],
  ['createOperation', 'status'],
  ['createOperation', 'expiresAt'],
  ['getOperation', 'status'],
  ['getOperation', 'operationId'],
  ['initiateUpload', 'uploadId'],
  ['initiateUpload', 'key'],
  ['uploadChunk', 'size'],
  ['completeUpload', 'fileId'],
  ['completeUpload', 'size'],
  ['getFileStatus', 'status'],
  ['generateUploadId', 'uploadId'],
  ['completeFileUpload', 'fileId'],
  ['runInference', 'status'],
];

test('the app runs to its end on a platform with other names, by a wire profile', { timeout: 900_000 }, async () => {
  const fields = renamed.filter(([, field]) => field !== 'size');
  const changes = fields.map(([call, field]) => ({
    route: routes.find((one) => one.call === call)!,
    change: { kind: 'rename', on: 'success', field } as const,
  }));
  const names = Object.groupBy(fields, ([call]) => call);
  const calls = Object.fromEntries(
    Object.entries(names).map(([call, own]) => [
      call,
      { response: Object.fromEntries(own.map(([, field]) => [field, `${field}_x`])) },
    ]),
  );
  const profile = wireProfile({ name: 'other names', calls });
  const again = compare(expected, await seenThrough(changes, profile));
  expect(again.filter(({ verdict }) => verdict === 'breaks the app')).toEqual([]);
  const strange = await strangePlatform(platform.url, changes);
  cleanUpLater(() => strange.close());
  await using app = await startApp(defineApp({ ...myApp, profile }), {
    platform: { url: strange.url, apiKey: platform.apiKey },
  });
  const { run } = await deliver(platform, app, { stepId: 'cog' });
  expect(run.state).toBe('COMPLETED');
});

test('a search that a profile moves is asked at its own path', { timeout: 900_000 }, async () => {
  const profile = wireProfile({ name: 'moved search', calls: { searchItems: { path: '/moved/search' } } });
  const moved = await startSandbox({ permissions, seed: 'demo', profile });
  cleanUpLater(() => moved.close());
  const { exchanges } = await observe({ ...targetAt(moved.url, profile), apiKey: moved.apiKey }, 'read');
  for (const name of ['search-bounds/json-size', 'search-bounds/json-depth', 'refusals/search of nothing'])
    expect(exchanges.find((one) => one.name === name)?.facts['status'], name).toBe('400');
});

test('known differences are held in both directions', () => {
  const seen = [{ name: 'a/b' }, { name: 'a/c' }] as Exchange[];
  const difference = { exchange: 'a/b', fact: 'body.x' } as ReturnType<typeof compare>[number];
  const known = [
    { exchange: 'a/b', fact: 'body.x' },
    { exchange: 'a/c', fact: 'status' },
    { exchange: 'z/z', fact: 'status' },
  ];
  expect(withoutKnown([difference], known, seen)).toEqual({ unknown: [], gone: [{ exchange: 'a/c', fact: 'status' }] });
});

test('every assumption has a probe that there is, or says what a person does', () => {
  const ids = new Set(probes.map(({ id }) => id));
  for (const { id, probe } of assumptions)
    if (typeof probe === 'string') expect(ids.has(probe), `${id}: ${probe}`).toBe(true);
    else expect(probe.byHand.length, id).toBeGreaterThan(10);
});

test('every assumption is marked where it says that it is', async () => {
  for (const { id, file, symbol } of assumptions) {
    const source = await readFile(join(projectRoot, 'src', file), 'utf8');
    expect(source, `${id}: ${file}`).toContain(`@assumed ${id}`);
    expect(source, `${id}: ${file}`).toContain(symbol);
  }
});
