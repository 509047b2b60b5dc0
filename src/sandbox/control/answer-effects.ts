import { STATUS_CODES } from 'node:http';
/** What a fault does to an answer after the work. */
import type { OutgoingHttpHeaders } from 'node:http';
import type { Response } from 'express';

type Chunk = string | Uint8Array | null | undefined;

/** Most of an answer that is held back to be cut; of a longer one what comes later is left out. */
const maxHeldBytes = 1024 * 1024;

const bytesOf = (chunk: unknown): Buffer =>
  typeof chunk === 'string' ? Buffer.from(chunk) : chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0);

/** Lets `finish` answer in place of the work, when it is done; what that writes is thrown away, or handed over as far as `held` goes. */
function takeOver(
  res: Response,
  held: number,
  finish: (end: (body: Buffer) => void, work: Buffer, size: number) => void,
) {
  const end = res.end.bind(res);
  const parts: Buffer[] = [];
  let [kept, size] = [0, 0];
  const keep = (chunk: unknown) => {
    const bytes = bytesOf(chunk);
    size += bytes.length;
    const part = bytes.subarray(0, Math.max(0, held - kept));
    kept += part.length;
    if (part.length > 0) parts.push(part);
  };
  res.write = ((chunk: Chunk, encoding?: unknown, done?: unknown) => {
    keep(chunk);
    const callback = [encoding, done].find((one) => typeof one === 'function') as (() => void) | undefined;
    if (callback) process.nextTick(callback);
    return true;
  }) as Response['write'];
  res.end = ((chunk?: unknown, ...more: unknown[]) => {
    keep(chunk);
    const callback = [chunk, ...more].find((one) => typeof one === 'function') as (() => void) | undefined;
    finish((body) => end(body, callback), Buffer.concat(parts), size);
    return res;
  }) as Response['end'];
}

/** The work is done, and `status` is what is answered. */
export function answerAfterWork(res: Response, status: number, body: () => object): void {
  takeOver(res, 0, (end) => {
    for (const name of res.getHeaderNames())
      if (/^(content-(length|type|disposition|range|encoding)|accept-ranges|last-modified|etag)$/.test(name))
        res.removeHeader(name);
    res.statusCode = status;
    res.statusMessage = STATUS_CODES[status] ?? '';
    res.setHeader('Content-Type', 'application/json; charset=utf-8');
    const text = Buffer.from(JSON.stringify(body()));
    res.setHeader('Content-Length', text.length);
    end(text);
  });
}

/** Half of the body, as if that were all of it: what is in between has cut it. */
export function truncateAnswer(res: Response): void {
  takeOver(res, maxHeldBytes, (end, work, size) => {
    const half = work.subarray(0, Math.min(work.length, Math.floor(size / 2)));
    res.removeHeader('Content-Range');
    res.setHeader('Content-Length', half.length);
    end(half);
  });
}

/** The body as it is, said to be of another type. */
export function mislabelAnswer(res: Response, contentType: string): void {
  const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => Response;
  res.writeHead = ((...args: unknown[]) => {
    const headers = args.at(-1);
    if (headers && typeof headers === 'object') delete (headers as OutgoingHttpHeaders)['content-type'];
    res.setHeader('Content-Type', contentType);
    return writeHead(...args);
  }) as Response['writeHead'];
}

/** Discards the whole answer, then calls `finish`. */
export function dropAnswer(res: Response, finish: () => void): void {
  takeOver(res, 0, finish);
}

/** Sends the head and the first half at once, and the rest later. Without a `Content-Length`, sends half of the first chunk. The source waits in between. */
export function slowAnswer(res: Response, ms: number): void {
  const [write, end] = [res.write.bind(res), res.end.bind(res)] as unknown as [
    (...args: unknown[]) => boolean,
    (...args: unknown[]) => Response,
  ];
  let passed = 0;
  let state: 'before' | 'waiting' | 'after' = 'before';
  let conclude: (() => void) | null = null;
  const held: Buffer[] = [];
  const wait = () => {
    state = 'waiting';
    setTimeout(() => {
      state = 'after';
      let wantsMore = true;
      for (const bytes of held.splice(0)) wantsMore = write(bytes);
      if (conclude) conclude();
      else if (wantsMore) res.emit('drain');
    }, ms);
  };
  /** Returns true if the source may continue. */
  const take = (bytes: Buffer): boolean => {
    if (state === 'after') return write(bytes);
    if (state === 'waiting') {
      held.push(bytes);
      return false;
    }
    const length = Number(res.getHeader('Content-Length') ?? NaN);
    const middle = Math.floor((Number.isNaN(length) ? bytes.length : length) / 2);
    const first = bytes.subarray(0, Math.max(0, middle - passed));
    if (first.length > 0) write(first);
    passed += first.length;
    if (first.length === bytes.length) return true;
    if (!res.headersSent) res.flushHeaders();
    held.push(bytes.subarray(first.length));
    wait();
    return false;
  };
  res.write = ((chunk: Chunk, ...more: unknown[]) => {
    const callback = more.find((one) => typeof one === 'function') as (() => void) | undefined;
    if (callback) process.nextTick(callback);
    return take(bytesOf(chunk));
  }) as Response['write'];
  res.end = ((chunk?: unknown, ...more: unknown[]) => {
    const bytes = bytesOf(chunk);
    if (bytes.length > 0 && passed === 0 && !res.headersSent && !res.hasHeader('Content-Length'))
      res.setHeader('Content-Length', bytes.length);
    if (bytes.length > 0) take(bytes);
    const callback = [chunk, ...more].find((one) => typeof one === 'function');
    if (state === 'after') return end(callback);
    conclude = () => void end(callback);
    if (state === 'before') {
      if (!res.headersSent) res.flushHeaders();
      wait();
    }
    return res;
  }) as Response['end'];
}
