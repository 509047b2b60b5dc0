/** Names, identifiers, settings and odd requests at the edges of both servers. */
import { connect } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { fileName } from '../../src/contract/file.ts';
import { readAppConfig } from '../../src/app/config.ts';
import { readItem } from '../../src/sandbox/stac/import/read-item.ts';
import { serve, ownFolder, shownSetting } from '../../src/server/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

test.each([
  ['a\u0085b.tif', 'a control character of Latin-1'],
  ['\ud800.tif', 'half of a character'],
  ['a\tb.tif', 'a tab'],
])('the file name %j is refused: %s', (name) => {
  expect(fileName.safeParse(name).success).toBe(false);
});

test.each(['a..b.tif', 'ä 漢 😀.tif'])('control: %s is a good name', (name) => {
  expect(fileName.safeParse(name).success).toBe(true);
});

describe('an imported item', () => {
  const item = {
    ...{ id: 'a', collection: 'c', properties: { datetime: '2020-01-01T00:00:00Z' }, assets: {} },
    geometry: { type: 'Polygon', coordinates: [[[0, 0], [1, 0], [1, 1], [0, 0]]] },
  }; // oxfmt-ignore
  test.each([{ id: '..' }, { id: '.' }, { collection: '..' }, { id: 'a\u0000' }, { id: '\ud800' }])(
    'with %j is left out, with the reason',
    (more) => {
      expect(() => readItem({ ...item, ...more }, '/x/items.ndjson', 0)).toThrow('cannot stand in an address');
    },
  );
  test('control: with an odd name it is kept', () => {
    expect(readItem({ ...item, id: 'a/b %2F?#' }, '/x/items.ndjson', 0).id).toBe('a/b %2F?#');
  });
});

describe('a refused setting', () => {
  const refused = (env: Record<string, string>) => {
    try {
      readAppConfig({ PLATFORM_URL: 'http://127.0.0.1:1', PLATFORM_API_KEY: 'k', ...env }, () => {});
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  test('shows a carriage return', () => {
    expect(refused({ PORT: '0\r' })).toContain('PORT="0\\r" must be');
    expect(refused({ PORT: '70000' })).toContain('PORT=70000 must be');
  });
  test.each(['http://user:secret-word@host/path', 'postgres://user:secret-word@host', 'x http://a:secret-word@'])(
    'never shows the password in %s',
    (value) => {
      expect(shownSetting(value)).not.toContain('secret-word');
      const message = refused({ PLATFORM_URL: value });
      expect(message).toContain('PLATFORM_URL');
      expect(message).not.toContain('secret-word');
    },
  );
});

test('a data folder that cannot be made has a clear error', async () => {
  const file = join(await testFolder(), 'file');
  await writeFile(file, '');
  expect(() => ownFolder(join(file, 'x'))).toThrow(/^the data folder .*\/file\/x cannot be used: a file is in its way/);
});

describe('requests that Node itself refuses have the error body and a request id', () => {
  const sent = async (text: string): Promise<string> => {
    const served = await serve((_req, res) => void res.end('ok'), { host: '127.0.0.1', port: 0, portSetting: 'PORT' });
    cleanUpLater(() => served.close(100));
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1');
    socket.write(text);
    let answer = '';
    for await (const chunk of socket) {
      answer += String(chunk);
      if (answer.includes('}') || answer.endsWith('ok')) break;
    }
    return answer;
  };
  test.each([
    ['no HTTP', 'BOGUS\r\n\r\n', 400, 'malformed_request'],
    ['headers of 40 kB', `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${'a'.repeat(40_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'malformed_request'],
    ['an expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: foo\r\nConnection: close\r\n\r\n', 417, 'expectation_failed'],
  ])('%s', async (_what, text, status, code) => {
    const answer = await sent(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/\r\nX-Request-Id: [\w-]+\r\n/i);
    expect(JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1))).toMatchObject({ code });
  }); // oxfmt-ignore
});

describe('a typo is an error', () => {
  test('in a search and in a launch', async () => {
    const platform = await startSandbox();
    const answer = await fetch(`${platform.url}/public/stac/search`, {
      method: 'POST',
      headers: { 'X-API-KEY': apiKey, 'Content-Type': 'application/json' },
      body: JSON.stringify({ bbox: [0, 0, 1, 1], collections: ['c'], datetime: '2020-01-01T00:00:00Z/..', limt: 2 }),
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ details: [{ path: 'limt', message: 'is not known here' }] });
    const launched = await platform
      .control('POST', 'launches', { renewpolicy: 'rotate' })
      .catch((error: unknown) => error);
    expect(JSON.stringify(launched) + String(launched)).toContain('renewpolicy');
  });
});

test('two slashes in an address of the catalog are one', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const statusOf = async (path: string) =>
    (await fetch(`${sandbox.url}${path}`, { headers: { 'x-api-key': apiKey } })).status;
  expect(
    await Promise.all(['/public/stac//search?limit=1', '/public/stac//', '/public/stac//nope'].map(statusOf)),
  ).toEqual([200, 200, 404]);
});

test('a collection of an older version that no address can name takes no list with it', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const idsOf = async () => {
    const answer = await fetch(`${sandbox.url}/public/stac/collections`, { headers: { 'x-api-key': apiKey } });
    const { collections } = (await answer.json()) as { collections: { id: string }[] };
    return [answer.status, ...collections.map(({ id }) => id)];
  };
  const before = await idsOf();
  const database = new Sqlite(join(sandbox.dataDir, 'sandbox.db'));
  database.exec(
    "insert into collections select '..', catalog_id, title, description, license, keywords, created_at, 99 from collections limit 1",
  );
  database.close();
  expect(await idsOf()).toEqual(before);
  const root = await fetch(`${sandbox.url}/public/stac/`, { headers: { 'x-api-key': apiKey } });
  expect(root.status).toBe(200);
});
