/** Downloads: slow ones arrive, stalled ones end, and limits hold. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { downloadTo } from '../../src/platform-client/download.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';

async function download(
  listener: RequestListener,
  options: { readonly maxBytes?: number; readonly idleMs?: number } = {},
) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const path = join(await testFolder(), 'file');
  const { maxBytes = 1e6, idleMs } = options;
  const href = `${origin}/x?signature=s3cr3t`;
  await downloadTo({ href, allowedOrigins: [origin], path, maxBytes }, undefined, idleMs);
  return readFile(path, 'utf8');
}

test('a download that takes longer than the time without a byte arrives', async () => {
  const text = await download(
    (_req, res) => {
      res.writeHead(200, { 'content-length': '10' });
      void (async () => {
        for (let i = 0; i < 10; i++) {
          res.write(String(i));
          await sleep(150);
        }
        res.end();
      })();
    },
    { idleMs: 1_000 },
  );
  expect(text).toBe('0123456789');
});

test('each relative redirect is resolved against the address of the one before', async () => {
  const asked: string[] = [];
  const text = await download((req, res) => {
    asked.push(req.url!.replace(/\?.*/, ''));
    const location = { '/x': '/a/b', '/a/b': 'c', '/a/c': '../d' }[asked.at(-1)!];
    if (location === undefined) res.end('there');
    else res.writeHead(302, { location }).end();
  });
  expect([text, asked]).toEqual(['there', ['/x', '/a/b', '/a/c', '/d']]);
});

test.each(['gzip', 'GZIP', 'x-gzip'])(
  'a body in %s is decoded, although the client did not ask for an encoding',
  async (encoding) => {
    const zipped = gzipSync('hello');
    expect(await download((_req, res) => void res.writeHead(200, { 'content-encoding': encoding }).end(zipped))).toBe(
      'hello',
    );
  },
);

test('a download that stalls ends, and the error shows no signature', async () => {
  const stalled = download((_req, res) => void res.writeHead(200, { 'content-length': '10' }).write('0'), {
    idleMs: 200,
  });
  const error = await stalled.then(String, (thrown: unknown) => thrown as Error);
  expect(error).toMatchObject({ message: expect.stringContaining('no byte within 200 ms') as string });
  expect(JSON.stringify(error)).not.toContain('s3cr3t');
});

test('the pause that the platform asks for is in the error', () =>
  expect(download((_req, res) => res.writeHead(503, { 'retry-after': '7' }).end())).rejects.toMatchObject({
    platformStatus: 503,
    retryAfterMs: 7_000,
  }));

test.each([
  ['that says its length', { 'content-length': '11' }],
  ['that does not say its length', {}],
])('a file %s is refused if it is larger than the limit', (_name, headers) =>
  expect(
    download((_req, res) => res.writeHead(200, headers).end('0123456789a'), { maxBytes: 10 }),
  ).rejects.toMatchObject({
    code: 'asset_too_large',
  }),
);
