/**
 * Measures a server's work for an upload of 64 MiB chunks of random bytes, one after the other. The sandbox, `@tus/server`,
 * multer and a `cp` of as much take turns in one run. CPU is that of the server's process alone.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { sandboxControl } from '../../src/testing/sandbox-control.ts';
import { startProcess, type BenchProcess } from './processes.ts';

const chunkBytes = 64 * 1024 * 1024;
/** Written to the socket at once. */
const sliceBytes = 1024 * 1024;
const apiKey = 'bench-key';

/** Cost of the upload by one way. */
export interface ServerResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
}
export const ways = ['sandbox', '@tus/server', 'multer', 'cp'] as const;
export type Way = (typeof ways)[number];

interface Answer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly json: Record<string, string>;
}

/** Sends the parts as they are, at the socket's pace. */
export function send(
  method: string,
  url: string,
  headers: Record<string, string | number>,
  parts: readonly Buffer[] = [],
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const req = request(url, { method, headers: { ...headers, 'content-length': length } }, (res) => {
      const body: Buffer[] = [];
      res.on('data', (bytes: Buffer) => body.push(bytes));
      res.on('end', () => {
        const text = Buffer.concat(body).toString();
        const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, string>) : {};
        if (res.statusCode! >= 300) reject(new Error(`${method} ${url} was answered ${res.statusCode}: ${text}`));
        else resolve({ status: res.statusCode!, headers: res.headers, json });
      });
    });
    req.on('error', reject);
    void (async () => {
      for (const part of parts)
        for (let at = 0; at < part.length; at += sliceBytes)
          if (!req.write(part.subarray(at, at + sliceBytes))) await new Promise((go) => req.once('drain', go));
      req.end();
    })();
  });
}

const boundary = '----bench-boundary-0123456789abcdef';
export function form(
  fields: Record<string, string>,
  file: Buffer,
): { headers: Record<string, string>; parts: Buffer[] } {
  const head = Object.entries(fields)
    .map(([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
    .join('');
  const fileHead = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="part"\r\ncontent-type: application/octet-stream\r\n\r\n`;
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    parts: [Buffer.from(head + fileHead), file, Buffer.from(`\r\n--${boundary}--\r\n`)],
  };
}

type Upload = (chunk: Buffer, count: number) => Promise<void>;

async function toSandbox(url: string): Promise<Upload> {
  const { token, launchId } = await sandboxControl({ url }).launch('http://127.0.0.1:9/launch');
  const base = `${url}/public/external-app`;
  const headers = { 'x-api-key': apiKey };
  const post = (path: string, body: object) =>
    send('POST', `${base}${path}`, { ...headers, 'content-type': 'application/json' }, [
      Buffer.from(JSON.stringify(body)),
    ]);
  const { operationId } = (await post(`/operation/${token}`, { name: 'bench' })).json;
  await sandboxControl({ url }).approve({ launchId });
  await send('GET', `${base}/operation/${token}?operationId=${operationId}`, headers);
  return async (chunk, count) => {
    const { uploadId, key } = (
      await post(`/file/${token}/upload/initiate`, { operationId: operationId!, fileName: 'bench.bin' })
    ).json;
    for (let n = 1; n <= count; n++) {
      const { headers: type, parts } = form({ uploadId: uploadId!, key: key!, partNumber: String(n) }, chunk);
      await send('POST', `${base}/file/${token}/upload/chunk`, { ...headers, ...type }, parts);
    }
    await post(`/file/${token}/upload/complete`, {
      uploadId: uploadId!,
      key: key!,
      fileSize: count * chunk.length,
      sourceType: 'UNKNOWN',
    });
  };
}

const toTus =
  (url: string): Upload =>
  async (chunk, count) => {
    const protocol = { 'tus-resumable': '1.0.0' };
    const { headers } = await send('POST', `${url}/files`, { ...protocol, 'upload-length': count * chunk.length });
    for (let n = 0; n < count; n++)
      await send(
        'PATCH',
        String(headers['location']),
        { ...protocol, 'content-type': 'application/offset+octet-stream', 'upload-offset': n * chunk.length },
        [chunk],
      );
  };

const toMulter =
  (url: string): Upload =>
  async (chunk, count) => {
    for (let n = 0; n < count; n++) {
      const { headers, parts } = form({}, chunk);
      await send('POST', `${url}/chunk`, headers, parts);
    }
  };

/** One upload of `mebibytes` in a way, with a fresh process, in a folder of its own below `parent`. */
export async function benchServer(way: Way, mebibytes: number, parent: string): Promise<ServerResult> {
  const folder = await mkdtemp(join(parent, 'server-bench-'));
  const count = Math.ceil((mebibytes * 1024 * 1024) / chunkBytes);
  const chunk = randomBytes(chunkBytes);
  let server: BenchProcess | null = null;
  try {
    if (way === 'cp') {
      const from = join(folder, 'from');
      for (let n = 0; n < count; n++) await writeFile(from, chunk, { flag: 'a' });
      const began = performance.now();
      execFileSync('cp', ['--reflink=never', from, join(folder, 'to')]);
      return { seconds: (performance.now() - began) / 1000, cpuSeconds: NaN, peakMiB: NaN };
    }
    server =
      way === 'sandbox'
        ? await startProcess(
            new URL('../../src/commands/sandbox.ts', import.meta.url),
            'sandbox',
            ['--port', '0', '--data', folder],
            { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' },
          )
        : await startProcess(
            new URL(way === 'multer' ? './peers/multer.mjs' : './peers/tus.mjs', import.meta.url),
            'peer',
            [folder],
            {},
          );
    const upload =
      way === 'sandbox' ? await toSandbox(server.url) : way === 'multer' ? toMulter(server.url) : toTus(server.url);
    const [began, cpuBefore] = [performance.now(), server.cpuSeconds()];
    await upload(chunk, count);
    return {
      seconds: (performance.now() - began) / 1000,
      cpuSeconds: server.cpuSeconds() - cpuBefore,
      peakMiB: server.peakMiB(),
    };
  } finally {
    // Ended in order, so that it keeps what it has compiled for the next start.
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
