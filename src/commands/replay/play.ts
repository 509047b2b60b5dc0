import { setTimeout as sleep } from 'node:timers/promises';
import { KitError, type WireLimits } from '../../contract/index.ts';
import type { Bundle, Cause } from '../../sandbox/bundles/bundle.ts';
import { sandboxCall, type SandboxAddress } from '../../testing/sandbox-call.ts';
import { Browser } from '../certify/browser.ts';
import type { StartRequest } from '../certify/options.ts';
import type { LaunchVerdict, TracedCall } from '../certify/watched-launch.ts';
import { withItems, type BroughtItems } from './bring-inputs.ts';

export interface PlayOptions {
  readonly sandbox: SandboxAddress;
  readonly launchUrl: string;
  /** In place of what the bundle says that the app was asked. */
  readonly startRequest: StartRequest | null;
  readonly tokenField: string;
  readonly limits: Pick<WireLimits, 'pollIntervalMs'>;
  /** Longest time without any event before the play ends, in milliseconds. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  /** Stand for the items that were recorded. Default: they are there by the same names. */
  readonly items?: BroughtItems;
}

/** Result of a play: the bundle made of the new launch, and the causes with a moment that never came. */
export interface Played {
  readonly bundle: Bundle;
  /** Verdict of the referee on the new launch. */
  readonly rules: LaunchVerdict['rules'];
  readonly unfired: readonly string[];
}

const lookEveryMs = 50;
/** The play ends after this many more calls than were recorded: `after` all causes were played, or `before` the next cause. */
const maxMore = { after: 5, before: 20 };
/** Time limit of a play, without the intervals between polls. */
const maxMs = 120_000;
const appId = 'played';

/** Plays the causes of a run on a live sandbox with an app, each when the effect has come that it is hung on. */
export async function play(recorded: Bundle, options: PlayOptions): Promise<Played> {
  const { sandbox, launchUrl, signal } = options;
  await sandboxCall(sandbox, 'apps', { id: appId, name: 'App that is played', launchUrl, launchMode: 'query' });
  const launch = await sandboxCall<{ launchId: string; launchUrl: string }>(sandbox, 'launches', {
    appId,
    renewPolicy: recorded.renewPolicy,
  });
  const { launchId } = launch;
  const callsNow = async () =>
    (await sandboxCall<{ calls: TracedCall[] }>(sandbox, `launches/${launchId}/trace`)).calls;
  const browser = new Browser(signal, options.tokenField);
  /** Place that the launch led to; before it was opened, its address. */
  let home = new URL(launch.launchUrl);
  let { startRequest } = options;

  async function waitForOperation(label: string): Promise<string> {
    const { operations } = await sandboxCall<{ operations: { operationId: string; createdAt: string }[] }>(
      sandbox,
      `launches/${launchId}`,
    );
    const oldestFirst = operations.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
    const one = oldestFirst[Number(label.split(':')[1]) - 1];
    if (!one) throw new KitError('not_there', `${label} was not created`);
    return one.operationId;
  }

  async function fire(cause: Cause): Promise<void> {
    switch (cause.do) {
      case 'approve':
      case 'reject':
        return void (await sandboxCall(
          sandbox,
          `operations/${await waitForOperation(cause.operation)}/${cause.do}`,
          {},
        ));
      case 'advance':
        return void (await sandboxCall(sandbox, 'clock', { advanceMs: cause.ms, launchId }));
      case 'revoke':
        return void (await sandboxCall(sandbox, `launches/${launchId}/revoke`, {}));
      case 'start':
        await browser.start(
          home,
          startRequest ?? {
            method: 'POST',
            path: 'api/runs',
            body: JSON.stringify({ ...cause.body, input: withItems(cause.body.input, options.items ?? new Map()) }),
          },
        );
        startRequest = null;
        return;
      case 'fault':
    }
  }

  // A fault that was armed in between strikes the same call when it is armed from the start: no race with that call.
  for (const cause of recorded.causes) {
    if (cause.do !== 'fault' || cause.fired === 0) continue;
    const before = callsBefore(recorded, cause);
    await sandboxCall(sandbox, 'faults', {
      ...cause.fault,
      launchId,
      after: cause.fault.after + before,
      times: cause.fired,
    });
  }
  const waiting = recorded.causes.filter(({ do: what }) => what !== 'fault');
  const isDue = ({ after }: Cause, calls: readonly TracedCall[]) =>
    after === null || calls.filter(({ endpoint }) => endpoint === after.endpoint).length >= after.nth;
  const firedBeforeOpening = waiting.findIndex(({ after, do: what }) => after !== null || what === 'start');
  for (const cause of waiting.splice(0, firedBeforeOpening < 0 ? waiting.length : firedBeforeOpening))
    await fire(cause);
  home = await browser.open(launch.launchUrl, null);
  if (startRequest !== null && !waiting.some(({ do: what }) => what === 'start'))
    await browser.start(home, startRequest);

  const quietMs = options.limits.pollIntervalMs.max + 1_000;
  const giveUpAt =
    performance.now() + maxMs + options.patienceMs + recorded.effects.length * options.limits.pollIntervalMs.max;
  let [seen, sinceMs] = [0, performance.now()];
  for (;;) {
    const calls = await callsNow();
    if (calls.length !== seen) [seen, sinceMs] = [calls.length, performance.now()];
    const [next] = waiting;
    if (performance.now() > giveUpAt) break;
    if (next && isDue(next, calls)) {
      waiting.shift();
      sinceMs = performance.now();
      await fire(next);
      continue;
    }
    if (calls.length >= recorded.effects.length + (next ? maxMore.before : maxMore.after)) break;
    const isComplete = !next && calls.length >= recorded.effects.length;
    if (performance.now() - sinceMs > (isComplete ? quietMs : options.patienceMs)) break;
    await sleep(lookEveryMs, undefined, { signal });
  }
  const { faults } = await sandboxCall<{
    faults: { launchId: string | null; endpoint: string; times: number; fired: number }[];
  }>(sandbox, 'faults');
  const bundle = await settled(sandbox, launchId, signal);
  const { rules } = await sandboxCall<LaunchVerdict>(sandbox, `launches/${launchId}/verdict`);
  return {
    bundle,
    rules,
    unfired: [
      ...waiting.map(
        (cause) =>
          `${cause.do}, after ${cause.after === null ? 'the launch' : `${cause.after.endpoint} ${cause.after.nth}`}`,
      ),
      ...faults
        .filter((one) => one.launchId === launchId && one.fired < one.times)
        .map(({ endpoint }) => `the fault at ${endpoint}`),
    ],
  };
}

/** Calls of the fault's endpoint that were let through before it was armed. */
function callsBefore({ effects }: Bundle, { after, fault }: Extract<Cause, { do: 'fault' }>): number {
  if (after === null) return 0;
  let seen = 0;
  const end = effects.findIndex(({ endpoint }) => endpoint === after.endpoint && (seen += 1) === after.nth);
  return effects.slice(0, end + 1).filter(({ endpoint }) => endpoint === fault.endpoint).length;
}

const settleMs = 60_000;

/** The bundle, when the platform has processed what was delivered. */
async function settled(sandbox: SandboxAddress, launchId: string, signal: AbortSignal): Promise<Bundle> {
  for (const giveUpAt = performance.now() + settleMs; ; await sleep(250, undefined, { signal })) {
    const made = await sandboxCall<Bundle>(sandbox, `launches/${launchId}/bundle`);
    const isDone = made.outputs.every(({ status }) => status === 'COMPLETED' || status === 'FAILED');
    if (isDone || performance.now() > giveUpAt) return made;
  }
}
