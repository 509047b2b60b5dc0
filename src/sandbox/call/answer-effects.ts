/** Effects of a fault on a response after the work. */
import { STATUS_CODES } from 'node:http';
import type { Response } from 'express';

/** Bytes that are kept of an answer that is to be cut. */
const maxHeldBytes = 1024 * 1024;

/** The functions that write an answer to the client. */
interface WaysOut {
  /** Returns false if the source should wait for `drain`. */
  readonly write: (bytes: Buffer) => boolean;
  readonly end: (bytes?: Buffer) => void;
}

/** Passes all writes of the work to `effect`, which writes to the client. `end` gets the last bytes, which may be empty. */
function tap(
  res: Response,
  effect: (out: WaysOut) => { write(bytes: Buffer): boolean; end(last: Buffer): void },
): void {
  // `bind` keeps the last overload only. The callback of `end` is one of the caller's.
  const [write, end] = [res.write.bind(res), res.end.bind(res)] as unknown as [
    (bytes: Buffer) => boolean,
    (bytes: Buffer | undefined, done: unknown) => void,
  ];
  let done: unknown;
  const tapped = effect({ write, end: (bytes) => end(bytes, done) });
  const bytesOf = (chunk: unknown): Buffer =>
    typeof chunk === 'string' ? Buffer.from(chunk) : chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0);
  const callbackOf = (values: readonly unknown[]) =>
    values.find((argument): argument is () => void => typeof argument === 'function');
  // One function for all overloads of `write`, and another for those of `end`.
  res.write = ((...values: unknown[]) => {
    const callback = callbackOf(values);
    if (callback) process.nextTick(callback);
    return tapped.write(bytesOf(values[0]));
  }) as Response['write'];
  res.end = ((...values: unknown[]) => {
    done = callbackOf(values);
    tapped.end(bytesOf(values[0]));
    return res;
  }) as Response['end'];
}

/** Discards the answer of the work. `finish` then answers, with the first `held` bytes of that answer and its size. */
function takeOver(
  res: Response,
  held: number,
  finish: (end: (body: Buffer) => void, work: Buffer, size: number) => void,
) {
  tap(res, (out) => {
    const parts: Buffer[] = [];
    let [kept, size] = [0, 0];
    const keep = (bytes: Buffer) => {
      size += bytes.length;
      const part = bytes.subarray(0, Math.max(0, held - kept));
      kept += part.length;
      if (part.length > 0) parts.push(part);
      return true;
    };
    return {
      write: keep,
      end(last) {
        keep(last);
        finish(out.end, Buffer.concat(parts), size);
      },
    };
  });
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
  // One function for all overloads: it passes on what it is given.
  const writeHead = res.writeHead.bind(res) as (...args: unknown[]) => Response;
  res.writeHead = ((...args: unknown[]) => {
    const headers = args.at(-1);
    if (headers && typeof headers === 'object') Reflect.deleteProperty(headers, 'content-type');
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
  tap(res, (out) => {
    let passed = 0;
    let state: 'before' | 'waiting' | 'after' = 'before';
    let isOver = false;
    const held: Buffer[] = [];
    const wait = () => {
      if (!res.headersSent) res.flushHeaders();
      state = 'waiting';
      setTimeout(() => {
        state = 'after';
        let wantsMore = true;
        for (const bytes of held.splice(0)) wantsMore = out.write(bytes);
        if (isOver) out.end();
        else if (wantsMore) res.emit('drain');
      }, ms);
    };
    const write = (bytes: Buffer): boolean => {
      if (state === 'after') return out.write(bytes);
      if (state === 'waiting') {
        held.push(bytes);
        return false;
      }
      const length = Number(res.getHeader('Content-Length') ?? NaN);
      const middle = Math.floor((Number.isNaN(length) ? bytes.length : length) / 2);
      const first = bytes.subarray(0, Math.max(0, middle - passed));
      if (first.length > 0) out.write(first);
      passed += first.length;
      if (first.length === bytes.length) return true;
      held.push(bytes.subarray(first.length));
      wait();
      return false;
    };
    return {
      write,
      end(last) {
        if (last.length > 0) {
          if (passed === 0 && !res.headersSent && !res.hasHeader('Content-Length'))
            res.setHeader('Content-Length', last.length);
          write(last);
        }
        if (state === 'after') return out.end();
        isOver = true;
        if (state === 'before') wait();
      },
    };
  });
}
