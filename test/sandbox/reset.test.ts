/** Resets during uploads, a reset that fails, and chunks on a hanging connection. */
import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { readFileForm } from '../../src/sandbox/web/file-form.ts';
import { key, processed } from '../support/files.ts';
import { apiKey, openUpload, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

test('a reset that fails does not stop processing', { tags: [onlyInAll] }, async () => {
  const sandbox = await startSandbox();
  const held = new Sqlite(join(sandbox.dataDir, 'sandbox.db'));
  held.exec('begin immediate');
  expect((await sandbox.request('POST', '/sandbox/reset')).status).toBe(503);
  held.exec('rollback');
  held.close();
  const { fileId } = await processed(sandbox, Buffer.from('0123456789'), 'a.txt', 'UNKNOWN');
  expect(fileId).toBeTypeOf('string');
  expect((await sandbox.request('POST', '/sandbox/reset')).status).toBe(200);
});

async function upload(sandbox: TestSandbox, bytes: Buffer<ArrayBuffer>) {
  const body = new FormData();
  body.append('file', new Blob([bytes]), 'a.txt');
  const answer = await fetch(`${sandbox.url}/public/file/upload`, { method: 'POST', headers: key, body });
  return { status: answer.status, body: (await answer.json()) as { fileId?: string } };
}

test('uploads during a reset keep their bytes or get 404', async () => {
  const sandbox = await startSandbox();
  const statuses = new Set<number>();
  for (let round = 0; round < 12; round++) {
    const resetting = sandbox.request('POST', '/sandbox/reset');
    const done = await Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        await sleep(i * 4);
        const bytes = randomBytes(20_000 + i);
        return { bytes, ...(await upload(sandbox, bytes)) };
      }),
    );
    expect((await resetting).status).toBe(200);
    for (const { status, body, bytes } of done) {
      statuses.add(status);
      if (status !== 200) continue;
      const url = await sandbox.request('GET', `/public/file/download/url?fileId=${body.fileId}`, { headers: key });
      // The reset deleted it.
      if (url.status === 404) continue;
      expect(Buffer.from(await (await fetch(url.text)).arrayBuffer()).equals(bytes)).toBe(true);
    }
  }
  expect([...statuses].filter((status) => status !== 200 && status !== 404)).toEqual([]);
});

/** Starts a chunk whose body stops in the file. */
async function hangingChunk(sandbox: TestSandbox, token: string, uploadId: string, uploadKey: string) {
  const boundary = 'x';
  const fields = Object.entries({ uploadId, key: uploadKey, partNumber: '1' })
    .map(([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
    .join('');
  const request = requestHttp(`${sandbox.url}/public/external-app/file/${token}/upload/chunk`, {
    method: 'POST',
    headers: {
      'x-api-key': apiKey,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'transfer-encoding': 'chunked',
    },
  });
  request.on('error', () => {});
  request.write(`${fields}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nbegun`);
  await sleep(300);
  return request;
}

test('a chunk that hangs holds up neither the clock nor a reset', async () => {
  const sandbox = await startSandbox();
  const { token, uploadId, key: uploadKey } = await openUpload(sandbox);
  const hanging = await hangingChunk(sandbox, token, uploadId, uploadKey);
  await sandbox.advance(30 * 3_600_000);
  expect((await sandbox.request('POST', '/sandbox/reset')).status).toBe(200);
  hanging.destroy();
});

test('a chunk of a session that a reset deletes meanwhile gets 404', async () => {
  const sandbox = await startSandbox();
  const { token, uploadId, key: uploadKey } = await openUpload(sandbox);
  const sending = await hangingChunk(sandbox, token, uploadId, uploadKey);
  await sandbox.request('POST', '/sandbox/reset');
  const responding = once(sending, 'response');
  sending.end('\r\n--x--\r\n');
  const [response] = (await responding) as [IncomingMessage];
  expect(response.statusCode).toBe(404);
  expect(await json(response)).toMatchObject({ code: 'upload_session_not_found' });
});

const anyForm = {
  fileField: 'file',
  fields: z.record(z.string(), z.string()),
  tooLarge: () => {
    throw new Error('too large');
  },
};

/** The parts of a request that `readFileForm` uses. */
const requestOf = (bytes: number) => ({
  headers: { 'content-type': 'multipart/form-data; boundary=x', 'content-length': String(bytes) },
  socket: new EventEmitter(),
});

test('a body is destroyed as soon as its connection ends', async () => {
  const body = new Readable({ read() {} });
  const request = requestOf(1_000);
  const reading = readFileForm(request as never, body, { ...anyForm, maxBytes: 1_000 }, ({ content }) =>
    content.toArray(),
  );
  request.socket.emit('close');
  await expect(reading).rejects.toMatchObject({ status: 400 });
  expect(body.destroyed).toBe(true);
  expect(request.socket.listenerCount('close')).toBe(0);
});

test('a body that falls silent is cut', async () => {
  const body = new Readable({ read() {} });
  body.push('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nbegun');
  const request = requestOf(1_000);
  const reading = readFileForm(
    request as never,
    body,
    {
      ...anyForm,
      maxBytes: 1_000,
      silenceMs: 50,
    },
    ({ content }) => content.toArray(),
  );
  await expect(reading).rejects.toMatchObject({ status: 400, code: 'malformed_form' });
  expect(body.destroyed).toBe(true);
});

test('a body that waits for its turn is not silent', async () => {
  const body = new Readable({ read() {} });
  body.push('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n');
  for (let i = 0; i < 64; i++) body.push(Buffer.alloc(64 * 1024, 'a'));
  body.push('\r\n--x--\r\n');
  body.push(null);
  const request = requestOf(5_000_000);
  let bytes = 0;
  await readFileForm(
    request as never,
    body,
    {
      ...anyForm,
      maxBytes: 5_000_000,
      silenceMs: 50,
    },
    async ({ content, end }) => {
      // The chunk before it takes four times as long as a client may be silent.
      await new Promise((later) => setTimeout(later, 200));
      for await (const part of content) bytes += (part as Buffer).length;
      await end();
    },
  );
  expect(bytes).toBe(64 * 64 * 1024);
});

test('a form that ends within its file is malformed, whatever the file says first', async () => {
  const body = new Readable({ read() {} });
  body.push('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n');
  const request = requestOf(1_000);
  const reading = readFileForm(
    request as never,
    body,
    { ...anyForm, maxBytes: 1_000_000, silenceMs: 10_000 },
    async ({ content, end }) => {
      for await (const part of content) void part;
      return end();
    },
  );
  // The reader has begun before the end comes.
  for (let i = 0; i < 3; i++) {
    body.push(Buffer.alloc(1_000, 'a'));
    await new Promise((later) => setTimeout(later, 20));
  }
  body.push(null);
  await expect(reading).rejects.toMatchObject({ status: 400, code: 'malformed_form' });
});
