import { interfaceCalls } from '../../../contract/index.ts';
import { abortableSleep, PlatformError, type LaunchCalls } from '../../../platform-client/index.ts';
import { noProgress } from '../run-progress.ts';
import type { RunState } from '../run-state.ts';
import type { Run, RunFacts } from '../run.ts';
import type { StageContext } from './stage.ts';

/** The run continues at most this long after the platform is back. */
const pauseMs = { first: 2_000, most: 10_000 };

/** Part of a stage's context that a repeated call needs. */
type CallingContext = Pick<StageContext, 'patience' | 'now' | 'signal' | 'report' | 'log'>;

/** Methods that the app calls again anyway: the renewal of the token, and polls. */
const calledAgain: ReadonlySet<string> = new Set([
  'keepAlive',
  ...Object.entries(interfaceCalls).flatMap(([name, { retries }]) => (retries === false ? [name] : [])),
]);

type Method = (...given: readonly unknown[]) => Promise<unknown>;

/** Calls of a launch that are repeated while the platform is away, except those that the app calls again anyway. */
export function patientCalls(calls: LaunchCalls, context: CallingContext): LaunchCalls {
  const patient = Object.entries(calls as unknown as Record<string, Method>).map(([name, method]): [string, Method] => [
    name,
    calledAgain.has(name) ? method : (...given) => retryWhileDown(context, () => method(...given)),
  ]);
  // Each method has the type of the one that it repeats.
  return Object.fromEntries(patient) as unknown as LaunchCalls;
}

/**
 * Calls the platform again and again while it is away, up to `platformPatienceMs`: what a user approved
 * must not be lost to a restart of the platform. Throws errors that waiting cannot fix at once. `pauseFor` waits between calls, by
 * default by the clock of the machine.
 */
export async function retryWhileDown<T>(
  context: CallingContext,
  call: () => Promise<T>,
  pauseFor = abortableSleep,
): Promise<T> {
  for (let [wait, tries] = [pauseMs.first, 2]; ; [wait, tries] = [Math.min(pauseMs.most, wait * 2), tries + 1]) {
    try {
      const answer = await call();
      context.patience.answered();
      if (tries > 2) context.report(noProgress);
      return answer;
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof PlatformError)) throw error;
      if (!error.isTransient) {
        // A refusal is an answer too.
        context.patience.answered();
        throw error;
      }
      const giveUpAtMs = context.patience.unanswered();
      if (context.now() + wait > giveUpAtMs) throw error;
      // Waits as long as `Retry-After` asks, but tries once more before the app gives up.
      const pause = Math.max(wait, Math.min(error.retryAfterMs ?? 0, giveUpAtMs - context.now()));
      context.log.warn(
        { endpoint: error.endpoint, code: error.code, requestId: error.requestId, pauseMs: pause },
        'the platform does not answer, trying again',
      );
      context.report({ ...noProgress, note: `${saidBy(error)}; try ${tries} in ${Math.round(pause / 1_000)} s` });
      await pauseFor(pause, context.signal);
    }
  }
}

/** Describes the platform's response in words. */
export function saidBy({ platformStatus }: Pick<PlatformError, 'platformStatus'>): string {
  return platformStatus === null ? 'the platform did not answer' : `the platform answered ${platformStatus}`;
}

const commitAgainMs = 1_000;

/**
 * Commits a move, and repeats that while the database is away, so that nobody has to ask the platform a second time or
 * run a step a second time. Throws as `RunStore.transition`, or the signal's reason.
 */
export async function commitTransition(
  context: StageContext,
  run: Run,
  to: RunState,
  facts: RunFacts = {},
): Promise<Run> {
  for (let isAgain = false; ; isAgain = true) {
    try {
      // The first commit may have succeeded even though its answer was lost.
      const now = isAgain ? await context.store.find(run.id) : null;
      if (now?.claim === run.claim && now.state === to) return now;
      return await context.store.transition(run, to, facts);
    } catch (error) {
      context.signal.throwIfAborted();
      if (!context.isAway(error)) throw error;
    }
    await abortableSleep(commitAgainMs, context.signal);
    await context.untilBack();
  }
}
