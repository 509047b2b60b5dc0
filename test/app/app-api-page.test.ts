/** Every call on docs/app-api.md is made, and its answer has the fields that the page names. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { launchApp, startApp, type BrowserSession } from '../support/app.ts';
import { projectRoot } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

const page = await readFile(join(projectRoot, 'docs/app-api.md'), 'utf8');
const cellsOf = (row: string) => row.split(/(?<!\\)\|/).map((cell) => cell.trim());
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map(cellsOf);
/** Field names in backquotes. */
const fieldsIn = (text: string) => [...text.matchAll(/`([a-zA-Z]+)`/g)].map(([, name = '']) => name);
const calls = rows.flatMap(([, call = '', answer = '']) =>
  [...call.matchAll(/`(GET|POST) (api\/[^`?]+|\/manifest)`/g)].map(([, method = '', path = '']) => ({
    method,
    path,
    answer,
  })),
);
const runFields = rows
  .filter(
    ([, name = '', meaning]) => /^(`\w+`(, )?)+$/.test(name) && meaning !== undefined && !name.includes('platform'),
  )
  .flatMap(([, name = '']) => fieldsIn(name))
  .filter((name) => !['local', 'synthetic', 'named'].includes(name));
/** The body of a start on the page. */
const started = JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!) as { input: { items: unknown[] } };

let session: BrowserSession;
let runId: string;
/** File name of the output of ndvi. */
const outputName = 'ndvi.tif';

beforeAll(async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url);
  const launch = await launchApp(sandbox, app);
  session = launch.session;
  const { id } = await session.start(started);
  const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
  await session.waitFor(id, 'COMPLETED');
  runId = id;
}, 120_000);

async function answerTo(method: string, path: string): Promise<Response> {
  const address = path
    .replace('{runId}', runId)
    .replace('{id}', runId)
    .replace('{outputName}', outputName)
    .replace('/manifest', new URL('/manifest', session.home).href);
  if (method === 'GET') return session.get(address);
  const search = { collections: ['olinda-coast'] };
  return session.post(address, path === 'api/items/search' ? search : path.includes('{') ? {} : started);
}

test('the page has calls, and fields of a run', () => {
  expect(calls.length).toBeGreaterThan(13);
  expect(runFields).toEqual(expect.arrayContaining(['id', 'state', 'usage', 'failure', 'history']));
});

describe('answers', () => {
  test.each(calls)('$method $path', async ({ method, path, answer }) => {
    const response = await answerTo(method, path);
    if (path.endsWith('/cancel')) {
      // The run has ended, and the page says so.
      expect([answer, response.status]).toEqual([expect.stringContaining('409'), 409]);
      expect(Object.keys((await response.json()) as object)).toEqual(
        expect.arrayContaining(['error', 'code', 'requestId']),
      );
      return;
    }
    expect(response.status).toBe(answer.includes('201') ? 201 : 200);
    if (path.endsWith('.png')) return expect(response.headers.get('content-type')).toBe('image/png');
    const body = (await response.json()) as Record<string, Record<string, unknown>[]>;
    const [outer = '', ofEach] = answer.split('each with');
    expect(Object.keys(body)).toEqual(expect.arrayContaining(fieldsIn(outer)));
    for (const entry of ofEach ? body[fieldsIn(outer)[0]!]! : [])
      expect(Object.keys(entry)).toEqual(expect.arrayContaining(fieldsIn(ofEach!.split('(')[0]!)));
    if (/^(201 and )?(the|a new) run\b/.test(answer) && path.includes('{runId}') && method === 'GET')
      expect(Object.keys(body)).toEqual(expect.arrayContaining(runFields));
  });

  test.each(['api/runs/{id}/prov', 'api/runs/{id}/items/{outputName}'])('GET %s', async (path) => {
    expect(page).toContain(`\`GET ${path}\``);
    const response = await answerTo('GET', path);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('json')]);
  });

  test('an error has the fields of the page', async () => {
    const response = await session.get('api/runs/none');
    expect(response.status).toBe(404);
    const error = (await response.json()) as { requestId: string };
    expect(Object.keys(error).toSorted()).toEqual(['code', 'error', 'requestId']);
    expect(response.headers.get('x-request-id')).toBe(error.requestId);
  });

  test('at most 200 runs are listed', async () => {
    expect((await session.get('api/runs?limit=200')).status).toBe(200);
    expect((await session.get('api/runs?limit=201')).status).toBe(400);
  });
});
