import { KitError, type ErrorCode, type ValidationDetail } from '../contract/index.ts';

/** Failures that are no answer of the platform, beside the contract's own codes. */
export type TransportCode =
  | 'connection_failed'
  | 'timeout'
  | 'redirect_refused'
  | 'intermediary_refused'
  | 'unexpected_answer'
  | 'broken_answer'
  | 'not_finished'
  | 'unknown_error';

/** Request timeout, too early, too many requests (RFC 9110, RFC 8470, RFC 6585). */
const transient4xx: ReadonlySet<number> = new Set([408, 425, 429]);

/** A call to the platform that did not succeed. Holds no token, key or address. */
export class PlatformError extends KitError {
  declare readonly code: ErrorCode | TransportCode;
  readonly endpoint: string;
  /** The platform's HTTP status; null where there was no answer. */
  readonly platformStatus: number | null;
  readonly requestId: string | null;
  readonly details: readonly ValidationDetail[];
  readonly expectedPart: number | null;
  /** Delay that `Retry-After` asked for. Null without that header. */
  readonly retryAfterMs: number | null;

  constructor(
    endpoint: string,
    code: ErrorCode | TransportCode,
    reason: string,
    facts: {
      platformStatus?: number | null;
      requestId?: string | null;
      details?: readonly ValidationDetail[];
      expectedPart?: number | null;
      retryAfterMs?: number | null;
      cause?: unknown;
    } = {},
  ) {
    super(code, `${endpoint}: ${reason}`, { status: 502, cause: facts.cause });
    this.endpoint = endpoint;
    this.platformStatus = facts.platformStatus ?? null;
    this.requestId = facts.requestId ?? null;
    this.details = facts.details ?? [];
    this.expectedPart = facts.expectedPart ?? null;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }

  /** True where the same request may succeed later: connection errors, timeouts, answers that were cut or are somebody else's, 408, 425, 429 and 5xx. */
  get isTransient(): boolean {
    if (this.code === 'connection_failed' || this.code === 'timeout' || this.code === 'broken_answer') return true;
    // Until somebody installs what is missing there.
    if (this.code === 'inference_unavailable') return false;
    return this.platformStatus !== null && (transient4xx.has(this.platformStatus) || this.platformStatus >= 500);
  }
}

/** Makes the error for a redirect, because the app follows none. `advice` ends the message. */
export const redirectRefused = (
  endpoint: string,
  status: number,
  facts: ConstructorParameters<typeof PlatformError>[3],
  advice = '',
): PlatformError =>
  new PlatformError(
    endpoint,
    'redirect_refused',
    `answered ${status}, a redirect, which the app never follows${advice}`,
    facts,
  );

/** Refusals of proxies between the app and the platform, if no code of the platform comes with them, and the way out. */
const intermediaryAdvice: Readonly<Record<number, string>> = {
  407: 'a proxy between the app and the platform asks for a user: name one in HTTPS_PROXY',
  413: 'something between the app and the platform accepts only smaller bodies: lower UPLOAD_PART_BYTES, or raise its limit (client_max_body_size in nginx)',
  414: 'something between the app and the platform accepts only shorter addresses: raise its limit (large_client_header_buffers in nginx)',
  431: 'something between the app and the platform accepts only shorter headers: raise its limit (large_client_header_buffers in nginx)',
};

export const isIntermediaryStatus = (status: number): boolean => intermediaryAdvice[status] !== undefined;

export const intermediaryRefused = (
  endpoint: string,
  status: number,
  facts: ConstructorParameters<typeof PlatformError>[3],
): PlatformError =>
  new PlatformError(endpoint, 'intermediary_refused', `answered ${status}: ${intermediaryAdvice[status] ?? ''}`, facts);

/**
 * Makes the error for a call without a complete response. `ended` is the message if the deadline of the call ended it. The error leaves out the cause, which
 * may contain the address and the headers.
 */
export function unanswered(endpoint: string, error: unknown, ended: string | null): PlatformError {
  if (ended !== null) return new PlatformError(endpoint, 'timeout', ended);
  const { code }: { code?: unknown } = error ?? {};
  const reason = typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : 'broken';
  return new PlatformError(endpoint, 'connection_failed', `connection failed (${reason})`);
}
