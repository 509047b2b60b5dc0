import { parseSetCookie, stringifyCookie } from 'cookie';
import type { StartRequest } from './options.ts';

const maxRedirects = 10;
const maxHeadBytes = 64 * 1024;
const maxNameCharacters = 100;

/** A cookie goes back as it came: what it means is the app's. */
const asItCame = (value: string) => value;

/** Opens a launch as a browser would: one jar of cookies, redirects followed. Throws `OpenError` where the app refuses. */
export class Browser {
  #cookies = new Map<string, string>();
  #signal: AbortSignal;
  #tokenField: string;
  #answerMs: number;
  /** Name of the app on the page that the launch led to: its `application-name`, or its title; null without either. */
  appName: string | null = null;

  /** `signal` ends what is under way; `tokenField` holds the token of a launch by form; `answerMs` limits each request. */
  constructor(signal: AbortSignal, tokenField: string, answerMs: number) {
    this.#signal = signal;
    this.#tokenField = tokenField;
    this.#answerMs = answerMs;
  }

  /** In form_post mode `token` is posted to the address; in query mode the address holds it. Gives where the launch led. */
  async open(launchUrl: string, token: string | null): Promise<URL> {
    let request: RequestInit =
      token === null ? {} : { method: 'POST', body: new URLSearchParams({ [this.#tokenField]: token }) };
    let address = new URL(launchUrl);
    let response = await this.#send(address, request);
    for (let i = 0; response.status >= 300 && response.status < 400; i++) {
      const location = response.headers.get('location');
      if (location === null || i === maxRedirects || !URL.canParse(location, address.href))
        throw new OpenError(response.status, 'the app redirects the launch without an address');
      address = new URL(location, address);
      // These two keep method and body (RFC 9110, 15.4.8 and 15.4.9); after the others a browser asks with GET.
      if (response.status !== 307 && response.status !== 308) request = {};
      response = await this.#send(address, request);
    }
    if (!response.ok) throw new OpenError(response.status, `the app answered the launch with ${response.status}`);
    return address;
  }

  async start(home: URL, { method, path, body }: StartRequest): Promise<void> {
    const response = await this.#send(new URL(path, home), {
      method,
      ...(body === null ? {} : { body, headers: { 'content-type': 'application/json' } }),
    });
    if (response.status >= 400)
      throw new OpenError(response.status, `the app answered the start request with ${response.status}`);
  }

  async #send(address: URL, init: RequestInit): Promise<Response> {
    const cookie = stringifyCookie(Object.fromEntries(this.#cookies), { encode: asItCame });
    const response = await fetch(address, {
      ...init,
      redirect: 'manual',
      headers: { ...init.headers, ...(cookie === '' ? {} : { cookie }) },
      signal: AbortSignal.any([this.#signal, AbortSignal.timeout(this.#answerMs)]),
    }).catch((error: unknown) => {
      this.#signal.throwIfAborted();
      throw new OpenError(
        null,
        `the app does not answer at ${address.origin} (${error instanceof Error ? error.name : 'error'})`,
        error instanceof Error && error.name === 'TimeoutError',
      );
    });
    for (const line of response.headers.getSetCookie()) {
      const { name, value } = parseSetCookie(line, { decode: asItCame });
      if (value !== undefined) this.#cookies.set(name, value);
    }
    const body = Buffer.from(await response.arrayBuffer());
    if (response.headers.get('content-type')?.startsWith('text/html'))
      this.appName ??= nameIn(body.subarray(0, maxHeadBytes).toString());
    return response;
  }
}

function nameIn(html: string): string | null {
  const found =
    /<meta\s+name="application-name"\s+content="([^"]+)"/i.exec(html)?.[1] ??
    /<title>([^<]+)<\/title>/i.exec(html)?.[1];
  return found?.trim().slice(0, maxNameCharacters) ?? null;
}

export class OpenError extends Error {
  /** Null where nothing answered. */
  readonly status: number | null;
  /** True if the app may have been too slow. */
  readonly isTimeout: boolean;
  constructor(status: number | null, message: string, isTimeout = false) {
    super(message);
    this.status = status;
    this.isTimeout = isTimeout;
  }
}
