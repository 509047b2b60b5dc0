import { isDecided, type Decision, type OperationView, type WireLimits } from '../../contract/index.ts';
import { abortableSleep, PlatformError } from '../../platform-client/index.ts';

export interface PollOptions {
  readonly getStatus: () => Promise<OperationView>;
  /** Within `bounds` (spec 4.8, rule 2). */
  readonly intervalMs: number;
  readonly bounds: WireLimits['pollIntervalMs'];
  readonly signal: AbortSignal;
  /** Waits between polls. Default: by the clock of the machine. */
  readonly pause?: typeof abortableSleep;
  /** A poll that failed for now; the next one may not. Throws if the platform is given up. */
  readonly onUnanswered: (error: PlatformError) => void;
  /** Receives the first answer after unanswered polls. */
  readonly onAnswered: () => void;
}

/**
 * Polls until APPROVED, REJECTED or EXPIRED, and not once more. The first poll comes one interval after
 * the call: the operation was created, or polled by an earlier process, just now. Throws what cannot get
 * better, what `onUnanswered` throws, or the signal's reason.
 */
export async function pollOperation(options: PollOptions): Promise<Decision> {
  const { pause = abortableSleep } = options;
  let askedToWaitMs = 0;
  let isUnanswered = false;
  for (;;) {
    await pause(Math.max(askedToWaitMs, jittered(options.intervalMs, Math.random(), options.bounds)), options.signal);
    askedToWaitMs = 0;
    try {
      const { status } = await options.getStatus();
      if (isUnanswered) options.onAnswered();
      isUnanswered = false;
      if (isDecided(status)) return status;
    } catch (error) {
      if (!(error instanceof PlatformError) || !error.isTransient) throw error;
      options.onUnanswered(error);
      isUnanswered = true;
      askedToWaitMs = Math.min(error.retryAfterMs ?? 0, longestWaitMs);
    }
  }
}

/** The longest pause between polls, even if the platform asks for a longer one. */
const longestWaitMs = 120_000;
const jitter = 0.1;

/** `intervalMs` plus or minus a tenth, so that many runs do not poll in step, and never outside what the platform recommends. */
export function jittered(intervalMs: number, random: number, { min, max }: WireLimits['pollIntervalMs']): number {
  return Math.min(max, Math.max(min, Math.round(intervalMs * (1 + jitter * (2 * random - 1)))));
}
