/** Waiting for a decision while the platform is away, on a clock of its own. */
import { expect, test } from 'vitest';
import { expiryOf } from '../../src/app/runs/stages/ask-for-approval.ts';
import { awaitDecision } from '../../src/app/runs/stages/await-decision.ts';
import { retryWhileDown } from '../../src/app/runs/stages/retry.ts';
import { Patience } from '../../src/app/runs/patience.ts';
import type { StageContext } from '../../src/app/runs/stages/stage.ts';
import type { Run } from '../../src/app/runs/run.ts';
import { assumedLimits } from '../../src/contract/index.ts';
import { PlatformError } from '../../src/platform-client/index.ts';

const minute = 60_000;

/** Waits for the decision on an operation whose window is 30 min. Each poll takes a minute; `answer` gives what the platform says at a minute. */
async function waitFor(
  answer: (minute: number) => string | null,
  platformPatienceMs: number,
  before = (_patience: Patience) => {},
) {
  let [nowMs, reports] = [0, 0];
  const patience = new Patience(platformPatienceMs, () => nowMs);
  before(patience);
  const context = {
    settings: {
      pollIntervalMs: 1,
      limits: { ...assumedLimits, pollIntervalMs: { min: 1, max: 1 } },
    },
    calls: {
      getOperation: async () => {
        nowMs += minute;
        const status = answer(nowMs / minute);
        if (status === null)
          throw new PlatformError('operation.status', 'internal_error', 'away', { platformStatus: 503 });
        return { status };
      },
    },
    store: { transition: async (_run: Run, to: string) => ({ state: to }) },
    signal: new AbortController().signal,
    now: () => nowMs,
    patience,
    report: () => reports++,
    onPollInterval: () => {},
    log: { info: () => {}, warn: () => {} },
  } as unknown as StageContext;
  const run = {
    id: 'r',
    claim: 1,
    state: 'AWAITING_APPROVAL',
    operationId: 'o',
    operationExpiresAtMs: 30 * minute,
  } as Run;
  const { state } = await awaitDecision(run, context);
  return { state, minutes: nowMs / minute, reports };
}

test('a platform that is away around the end of the window has the whole patience', async () => {
  const away = (at: number) => (at >= 29 && at < 60 ? null : at < 60 ? 'REQUESTED' : 'APPROVED');
  expect(await waitFor(away, 60 * minute)).toMatchObject({ state: 'APPROVED', minutes: 60 });
  await expect(waitFor(away, 10 * minute)).rejects.toMatchObject({ platformStatus: 503 });
});

test('one failure long after the window ends nothing', async () => {
  const late = (at: number) => (at === 50 ? null : at < 52 ? 'REQUESTED' : 'REJECTED');
  expect(await waitFor(late, 15 * minute)).toMatchObject({ state: 'REJECTED', minutes: 52 });
});

test('answers without news are not reported', async () => {
  expect(await waitFor((at) => (at < 20 ? 'REQUESTED' : 'APPROVED'), minute)).toMatchObject({ reports: 1 });
});

test('patience: the platform and the machine have it each, and progress alone renews both', () => {
  let nowMs = 0;
  const patience = new Patience(10, () => nowMs);
  expect([patience.unanswered(), patience.machineFailed()]).toEqual([10, false]);
  nowMs = 8;
  patience.answered();
  expect([patience.unanswered(), patience.machineFailed()]).toEqual([18, false]);
  nowMs = 10;
  expect([patience.unanswered(), patience.machineFailed()]).toEqual([18, true]);
  patience.progressed();
  expect([patience.unanswered(), patience.machineFailed()]).toEqual([20, false]);
});

test('patience: the first failure of the machine never ends it, however fast the clock runs', () => {
  let nowMs = 0;
  const patience = new Patience(10, () => (nowMs += 10));
  expect([patience.machineFailed(), patience.machineFailed()]).toEqual([false, true]);
});

test('a failure before this attempt ends with the first answer', async () => {
  const late = (at: number) => (at === 50 ? null : at < 52 ? 'REQUESTED' : 'REJECTED');
  const failed = (patience: Patience) => void patience.unanswered();
  expect(await waitFor(late, 15 * minute, failed)).toMatchObject({ state: 'REJECTED', minutes: 52 });
});

test.each([
  [15, 10],
  [5, 5],
])('with a patience of %i min, the app waits %i min if Retry-After asks for ten', async (patienceMin, waitMin) => {
  const busy = () =>
    new PlatformError('upload.chunk', 'unknown_error', 'later', { platformStatus: 429, retryAfterMs: 10 * minute });
  const [abort, pauses]: [AbortController, number[]] = [new AbortController(), []];
  const context = {
    ...{ patience: new Patience(patienceMin * minute, () => 0), now: () => 0, signal: abort.signal, report: () => {} },
    log: {
      warn: ({ pauseMs }: { pauseMs: number }) => {
        pauses.push(pauseMs);
        setTimeout(() => abort.abort(new Error('seen')));
      },
    },
  } as unknown as StageContext;
  await expect(retryWhileDown(context, () => Promise.reject(busy()))).rejects.toThrow('seen');
  expect(pauses).toEqual([waitMin * minute]);
});

test('a refusal is an answer: the next call has its whole patience', async () => {
  let nowMs = 0;
  const patience = new Patience(10 * minute, () => nowMs);
  const error = (platformStatus: number) =>
    new PlatformError('upload.chunk', platformStatus === 404 ? 'upload_session_not_found' : 'internal_error', 'no', {
      platformStatus,
    });
  patience.unanswered();
  nowMs = 9 * minute;
  const context = { patience, now: () => nowMs, signal: new AbortController().signal } as unknown as StageContext;
  await expect(retryWhileDown(context, () => Promise.reject(error(404)))).rejects.toMatchObject({
    platformStatus: 404,
  });
  expect(patience.unanswered()).toBe(19 * minute);
});

test.each<[string, number, number]>([
  // The run began 20 minutes ago, and its operation has a window of 30 minutes.
  ['the operation is new', 0, 30],
  ['the first response was lost 20 minutes ago', -20, 10],
  ["the platform's clock is an hour ahead", 60, 30],
  ["the platform's clock is an hour behind", -60, 30],
])('the end of the window by the own clock: %s', (_, createdAfterMinutes, minutesLeft) => {
  const nowMs = Date.parse('2026-11-30T12:00:00Z');
  const at = (minutes: number) => new Date(nowMs + minutes * minute).toISOString();
  const created = { createdAt: at(createdAfterMinutes), expiresAt: at(createdAfterMinutes + 30) };
  const context = { now: () => nowMs, settings: {} } as unknown as Parameters<typeof expiryOf>[2];
  expect((expiryOf(created, { createdAtMs: nowMs - 20 * minute }, context) - nowMs) / minute).toBe(minutesLeft);
});
