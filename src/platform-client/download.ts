import { open, type FileHandle } from 'node:fs/promises';
import { pipeline, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { AxiosResponse } from 'axios';
import { KitError } from '../contract/index.ts';
import { bareHttp } from './bare-http.ts';
import { startDeadline } from './deadline.ts';
import { PlatformError, redirectRefused, unanswered } from './platform-error.ts';
import { proxyFor } from './proxy.ts';
import { parseRetryAfter } from './retry-policy.ts';

/** A download: its address, the file that takes it, and its limits in bytes. */
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

const isRedirect = ({ status, headers }: AxiosResponse) =>
  status >= 300 && status < 400 && typeof headers['location'] === 'string';

/** Address that a redirect leads to; relative ones are read as browsers read them. */
function redirectOf({ headers }: AxiosResponse, from: URL): string {
  const location = String(headers['location']);
  return URL.canParse(location, from.href) ? new URL(location, from.href).href : location;
}

/** Time without a byte after which a download fails, in ms. */
const defaultIdleMs = 60_000;

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
  idleMs = defaultIdleMs,
): Promise<void> {
  await fetchTo(
    { ...wanted, idleMs, url: requireAllowed(href, allowedOrigins), endpoint: 'stac.data', allowedOrigins },
    signal,
  );
}

/** Redirects of one link that are followed, each to an allowed origin. */
const maxRedirects = 3;

interface Fetch extends Pick<Download, 'path' | 'maxBytes' | 'onProgress'> {
  /** Default: 60,000. */
  readonly idleMs?: number;
  readonly url: URL;
  readonly endpoint: string;
  /** Default GET. */
  readonly method?: string;
  /** Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Origins that a redirect may lead to. Default: none, a redirect is refused. */
  readonly allowedOrigins?: readonly string[];
}

/** Decoders of bodies that come encoded although nobody asked for that. Each refuses a body that was cut. */
const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * One try of a GET whose answer is a file. Follows redirects only to allowed origins. Throws `PlatformError` or `DownloadError`; an error of the
 * file at `path` as it is.
 */
export async function fetchTo(
  {
    url,
    endpoint,
    method = 'GET',
    headers = {},
    path,
    maxBytes,
    idleMs = defaultIdleMs,
    onProgress,
    allowedOrigins = [],
  }: Fetch,
  signal: AbortSignal | undefined,
): Promise<void> {
  const deadline = startDeadline(idleMs, signal);
  let file: FileHandle | null = null;
  let fileError: unknown = null;
  const written = <T>(work: Promise<T>) =>
    work.catch((error: unknown) => {
      fileError = error;
      throw error;
    });
  try {
    const ask = (from: URL) =>
      bareHttp.request<Readable>({
        method,
        url: from.href,
        headers: { ...headers, 'accept-encoding': 'identity' },
        signal: deadline.signal,
        ...proxyFor(from.hostname),
      });
    let [from, response] = [url, await ask(url)];
    for (let left = allowedOrigins.length > 0 ? maxRedirects : 0; left > 0 && isRedirect(response); left--) {
      response.data.destroy();
      from = requireAllowed(redirectOf(response, from), allowedOrigins);
      response = await ask(from);
    }
    refuseUnlessOk(response, endpoint);
    const encoding = String(response.headers['content-encoding'] ?? 'identity').toLowerCase();
    const decoder = decoders[encoding];
    if (decoder === undefined && encoding !== 'identity') {
      response.data.destroy();
      throw new PlatformError(
        endpoint,
        'unexpected_answer',
        'answered with a content encoding that the app did not ask for',
      );
    }
    const length = Number(response.headers['content-length'] ?? NaN);
    const totalBytes = Number.isSafeInteger(length) && decoder === undefined ? length : null;
    const tooLarge = () =>
      new DownloadError(
        'asset_too_large',
        `${endpoint === 'stac.data' ? "the item's data" : "the model's result"} is larger than the ${maxBytes} bytes that are left of INPUT_MAX_BYTES`,
      );
    if ((totalBytes ?? 0) > maxBytes) {
      response.data.destroy();
      throw tooLarge();
    }
    file = await written(open(path, 'w'));
    let bytes = 0;
    for await (const chunk of decoder ? pipeline(response.data, decoder(), () => {}) : response.data) {
      // A stream without an encoding gives buffers.
      const piece = chunk as Buffer;
      deadline.restart();
      bytes += piece.length;
      if (bytes > maxBytes) throw tooLarge();
      await written(file.writeFile(piece));
      onProgress?.(bytes, totalBytes);
    }
    // A proxy may end an answer early without an error.
    if (totalBytes !== null && bytes !== totalBytes)
      throw new PlatformError(endpoint, 'connection_failed', `ended after ${bytes} of ${totalBytes} bytes`);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof KitError || fileError !== null) throw error;
    throw unanswered(endpoint, error, deadline.isOver ? `no byte within ${idleMs} ms` : null);
  } finally {
    deadline.clear();
    await file?.close();
  }
}

function refuseUnlessOk({ status, headers, data }: AxiosResponse<Readable>, endpoint: string): void {
  // Part of a file (206) is not what was asked for.
  if (status === 200) return;
  data.destroy();
  const header = (name: string) => (typeof headers[name] === 'string' ? headers[name] : undefined);
  const facts = {
    platformStatus: status,
    requestId: header('x-request-id') ?? null,
    retryAfterMs: parseRetryAfter(header('retry-after'), header('date')),
  };
  if (status >= 300 && status < 400) throw redirectRefused(endpoint, status, facts);
  throw new PlatformError(endpoint, 'unknown_error', `answered ${status}`, facts);
}
