import { createWriteStream } from 'node:fs';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { KitError, type Endpoint } from '../contract/index.ts';
import { PlatformError } from './platform-error.ts';
import { parseRetryAfter } from './retry-policy.ts';

export interface Download {
  /** The temporary link as the platform gave it. Holds a signature: never logged. */
  readonly href: string;
  /** Origins that it may lead to. */
  readonly allowedOrigins: readonly string[];
  /** The file to write. It is unusable until it is whole. */
  readonly path: string;
  readonly maxBytes: number;
  /** `totalBytes` is null where the platform does not say. */
  readonly onProgress?: (bytes: number, totalBytes: number | null) => void;
}

/** The client refuses the link or its content. Trying again changes nothing. */
export class DownloadError extends KitError {
  constructor(code: 'asset_origin_refused' | 'asset_too_large', message: string) {
    super(code, message, { status: 422 });
  }
}

/** Without a byte for this long the connection is given up. */
const idleMs = 60_000;

/** The address that a link leads to. Throws `DownloadError` for one that may not be fetched. */
export function requireAllowed(href: string, allowedOrigins: readonly string[]): URL {
  const url = URL.canParse(href) ? new URL(href) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && allowedOrigins.includes(url.origin))
    return url;
  throw new DownloadError(
    'asset_origin_refused',
    `the platform's link leads to ${url?.origin ?? 'no address'}; the app fetches data only from ${allowedOrigins.join(', ')} (ASSET_ORIGINS)`,
  );
}

/** One try. The key stays out of it: the link's signature is what opens it, and its host may be another. */
export async function downloadTo(
  { href, allowedOrigins, ...wanted }: Download,
  signal: AbortSignal | undefined,
): Promise<void> {
  await fetchTo({ ...wanted, url: requireAllowed(href, allowedOrigins), endpoint: 'stac.data' }, signal);
}

interface Fetch extends Pick<Download, 'path' | 'maxBytes' | 'onProgress'> {
  readonly url: URL;
  readonly endpoint: Endpoint;
  /** Default GET. */
  readonly method?: string;
  /** Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One try of a GET whose answer is a file. Follows no redirect. Throws `PlatformError` or `DownloadError`. */
export async function fetchTo(
  { url, endpoint, method = 'GET', headers = {}, path, maxBytes, onProgress }: Fetch,
  signal: AbortSignal | undefined,
): Promise<void> {
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(), idleMs);
  try {
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { ...headers, 'accept-encoding': 'identity' },
      signal: signal ? AbortSignal.any([signal, idle.signal]) : idle.signal,
    });
    await refuseUnlessOk(response, endpoint);
    const length = Number(response.headers.get('content-length') ?? NaN);
    const totalBytes = Number.isSafeInteger(length) ? length : null;
    const tooLarge = () =>
      new DownloadError(
        'asset_too_large',
        `${endpoint === 'stac.data' ? "the item's data" : "the model's result"} is larger than the ${maxBytes} bytes that the app takes (INPUT_MAX_BYTES)`,
      );
    if ((totalBytes ?? 0) > maxBytes) throw tooLarge();
    let bytes = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        timer.refresh();
        bytes += chunk.length;
        onProgress?.(bytes, totalBytes);
        done(bytes > maxBytes ? tooLarge() : null, chunk);
      },
    });
    await pipeline(Readable.fromWeb(response.body as ReadableStream<Uint8Array>), counted, createWriteStream(path));
    // A proxy may end an answer early without an error.
    if (totalBytes !== null && bytes !== totalBytes && !response.headers.has('content-encoding'))
      throw new PlatformError(endpoint, 'connection_failed', `ended after ${bytes} of ${totalBytes} bytes`);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof KitError) throw error;
    if (isOfDisk(error)) throw error;
    if (idle.signal.aborted) throw new PlatformError(endpoint, 'timeout', `no byte within ${idleMs} ms`);
    // The cause is left out: it may hold the address.
    throw new PlatformError(endpoint, 'connection_failed', `connection failed (${codeOf(error)})`);
  } finally {
    clearTimeout(timer);
    idle.abort();
  }
}

async function refuseUnlessOk(response: Response, endpoint: Endpoint): Promise<void> {
  if (response.ok && response.body) return;
  await response.body?.cancel();
  const facts = {
    platformStatus: response.status,
    requestId: response.headers.get('x-request-id'),
    retryAfterMs: parseRetryAfter(response.headers.get('retry-after') ?? undefined, Date.now()),
  };
  if (response.status >= 300 && response.status < 400)
    throw new PlatformError(
      endpoint,
      'redirect_refused',
      `answered ${response.status}, a redirect, which the app never follows`,
      facts,
    );
  throw new PlatformError(endpoint, 'unknown_error', `answered ${response.status}`, facts);
}

function codeOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } };
  return typeof cause?.code === 'string' ? cause.code : 'broken';
}

function isOfDisk(error: unknown): boolean {
  return ['ENOSPC', 'EACCES', 'ENOENT', 'EROFS', 'EDQUOT'].includes(String((error as NodeJS.ErrnoException).code));
}
