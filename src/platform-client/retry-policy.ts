import pRetry from 'p-retry';
import { abortableSleep } from './abortable-sleep.ts';
import { NotFinishedError } from '../contract/index.ts';
import { PlatformError } from './platform-error.ts';

/** The policy for repeats of a failed call: exponential backoff with jitter, or what the platform's `Retry-After` asks. */
export interface RetryPolicy {
  /** Repeats after the first try. Default 5. */
  readonly retries: number;
  /** First delay; doubles from there, times a random 1 to 2. Default 250. */
  readonly minDelayMs: number;
  /** Default 8,000. */
  readonly maxDelayMs: number;
  /** A `Retry-After` beyond this is not waited for: the error is thrown and says so. Default 120,000. */
  readonly maxRetryAfterMs: number;
}

/** The number of tries of a call, and the pauses between them in milliseconds. */
export const defaultRetryPolicy: RetryPolicy = {
  retries: 5,
  minDelayMs: 250,
  maxDelayMs: 8_000,
  maxRetryAfterMs: 120_000,
};

/** Runs `attempt`, repeating transient failures (`PlatformError.isTransient`) by `policy`; other errors are thrown at once. */
export function withRetries<T>(
  attempt: () => Promise<T>,
  policy: RetryPolicy,
  signal: AbortSignal | undefined,
  onRetry: (error: PlatformError, attemptNumber: number) => void,
): Promise<T> {
  const mayRetry = (error: unknown): error is PlatformError =>
    error instanceof PlatformError && error.isTransient && (error.retryAfterMs ?? 0) <= policy.maxRetryAfterMs;
  let last: PlatformError | null = null;
  return pRetry(attempt, {
    retries: policy.retries,
    minTimeout: policy.minDelayMs,
    maxTimeout: policy.maxDelayMs,
    factor: 2,
    randomize: true,
    signal,
    shouldRetry: ({ error }) => mayRetry(error),
    async onFailedAttempt({ error, attemptNumber, retriesLeft }) {
      if (retriesLeft === 0 || !mayRetry(error)) return;
      onRetry(error, attemptNumber);
      last = error;
      if (error.retryAfterMs !== null) await abortableSleep(error.retryAfterMs, signal);
    },
  }).catch((error: unknown) => {
    // If the caller gives up, the last response of the platform is the cause of its error.
    if (signal?.aborted && last !== null && error instanceof Error) error.cause ??= last;
    throw error;
  });
}

/** Longest time for which an accepted but unfinished call is repeated. */
const unfinishedMs = 15 * 60_000;

/** Repeats a call that the platform has accepted and not finished. Waits `pauseMs`, or longer if `Retry-After` asks for it, but at most `maxPauseMs`. */
export async function untilFinished<T>(
  endpoint: string,
  attempt: () => Promise<T>,
  { pauseMs, maxPauseMs, signal }: { pauseMs: number; maxPauseMs: number; signal: AbortSignal | undefined },
): Promise<T> {
  const giveUpAt = performance.now() + unfinishedMs;
  for (;;) {
    let waitMs = pauseMs;
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof NotFinishedError)) throw error;
      waitMs = Math.max(waitMs, Math.min(parseRetryAfter(error.retryAfter) ?? 0, maxPauseMs));
      if (performance.now() + waitMs > giveUpAt)
        throw new PlatformError(endpoint, 'not_finished', `was not finished within ${unfinishedMs / 60_000} minutes`);
    }
    await abortableSleep(waitMs, signal);
  }
}

/**
 * `Retry-After` as seconds or as an HTTP date (RFC 9110, 10.2.3), in milliseconds; null where absent or senseless. The
 * answer's `Date` tells what time it is for the platform; this machine's clock does if there is none.
 */
export function parseRetryAfter(header: string | undefined, dateHeader?: string): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * 1000;
  const date = parseHttpDate(header);
  const now = parseHttpDate(dateHeader ?? '');
  return Number.isNaN(date) ? null : Math.max(0, date - (Number.isNaN(now) ? Date.now() : now));
}

/** `Date.parse` alone reads nearly anything as a date. */
const parseHttpDate = (text: string) =>
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} /.test(text) ? Date.parse(text) : NaN;
