/** The referee: each rule by what an app does over HTTP, in real time as the sandbox's machine tells it. */
import { describe, expect, test, vi } from 'vitest';
import { judge } from '../../src/sandbox/referee/verdict.ts';
import type { TracedCall as JudgedCall } from '../../src/sandbox/referee/traced-call.ts';
import { forwardTo } from '../../src/commands/certify/observe/forward.ts';
import { Observation } from '../../src/commands/certify/observe/observation.ts';
import { assumedProfile } from '../../src/contract/index.ts';
import { serve } from '../../src/server/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import {
  apiKey,
  chunkForm,
  openUpload,
  sandboxClient,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
  type OpenedUpload,
  type TestSandbox,
} from '../support/sandbox.ts';

const ruleIds = [
  'upload-after-approval',
  'poll-interval',
  'poll-stops',
  'upload-identity',
  'chunk-order',
  'no-work-after-refusal',
  'token-scope',
];

interface Stage {
  /** Reached through a referee that stands in front of it, as it does in front of a real platform. */
  readonly sandbox: TestSandbox;
  readonly observation: Observation;
  readonly launchId: string;
  readonly token: string;
  readonly operationId: string;
  /** Real time passes, as the sandbox's machine tells it. */
  wait(ms: number): void;
  poll(operationId?: string, token?: string): Promise<{ status: number; body: { status: string } }>;
  decide(decision: 'approve' | 'reject'): Promise<unknown>;
  initiate(): Promise<OpenedUpload>;
  /** Approved, and the app has read it. */
  approved(): Promise<OpenedUpload>;
}

async function stage(options: { renewPolicy?: 'extend' | 'rotate' } = {}): Promise<Stage> {
  let offset = 0;
  const now = () => Date.now() + offset;
  const platform = await startSandbox({ machineNow: now });
  const observation = new Observation(assumedProfile);
  const { handler, close } = forwardTo(new URL(platform.url), {
    ...{ onBegun: () => observation.begin(), onPassed: (passed) => observation.note(passed) },
    now,
  });
  const referee = await serve(handler, { host: '127.0.0.1', port: 0, portSetting: '--port' });
  cleanUpLater(() => {
    close();
    return referee.close(0);
  });
  const sandbox = sandboxClient(referee.url, platform.dataDir, () => platform.close());
  const { launchId, token } = await sandbox.launch(options);
  const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'judged' } })).body;
  const poll: Stage['poll'] = (id = operationId, by = token) =>
    sandbox.app('GET', `/operation/${by}?operationId=${id}`);
  const decide: Stage['decide'] = (decision) => sandbox.control('POST', `operations/${operationId}/${decision}`);
  const initiate = async () => {
    const { uploadId, key } = (
      await sandbox.app('POST', `/file/${token}/upload/initiate`, { body: { operationId, fileName: 'a.tif' } })
    ).body;
    return { launchId, token, operationId, uploadId, key };
  };
  return {
    sandbox,
    observation,
    launchId,
    token,
    operationId,
    wait: (ms) => void (offset += ms),
    poll,
    decide,
    initiate,
    async approved() {
      await decide('approve');
      offset += 2_500;
      await poll();
      return initiate();
    },
  };
}

/** Results of the nth launch by rule, from the referee in front of the platform. Rules that were not exercised are left out. */
async function observedBy({ observation }: Pick<Stage, 'observation'>, nth = 1): Promise<Record<string, string>> {
  const { scenarios } = await observation.report('an app', 'http://platform', null);
  return Object.fromEntries(
    scenarios[nth - 1]!.rules.flatMap(({ rule, result }) => (result === 'not_exercised' ? [] : [[rule, result]])),
  );
}

/** Results by rule. */
async function verdictOf({ sandbox, launchId }: Pick<Stage, 'sandbox' | 'launchId'>) {
  const verdict = await sandbox.control('GET', `launches/${launchId}/verdict`);
  expect(verdict.rules.map(({ rule }) => rule)).toEqual(ruleIds);
  return { ...verdict, by: Object.fromEntries(verdict.rules.map(({ rule, result }) => [rule, result])) };
}

const bytes = (n: number) => someBytes(100, n);

test('an app that does everything right: passed, and what never happened is not exercised', async () => {
  const it = await stage();
  await it.poll();
  const upload = await it.approved();
  for (const n of [1, 2, 3]) await sendChunk(it.sandbox, upload, n, bytes(n));
  await sendComplete(it.sandbox, upload, 300);
  const { result, by, rules } = await verdictOf(it);
  expect(by).toEqual({
    ...Object.fromEntries(ruleIds.map((id) => [id, 'passed'])),
    'no-work-after-refusal': 'not_exercised',
  });
  expect(result).toBe('passed');
  expect(await observedBy(it)).toEqual(
    Object.fromEntries(Object.entries(by).filter(([, one]) => one !== 'not_exercised')),
  );
  for (const rule of rules) expect(rule.clause).toMatch(/^4\.8, rules? \d/);
});

test('nothing has happened: not one rule is green', async () => {
  const sandbox = await startSandbox();
  const { launchId } = await sandbox.launch();
  const { result, by } = await verdictOf({ sandbox, launchId });
  expect([result, new Set(Object.values(by))]).toEqual(['not_exercised', new Set(['not_exercised'])]);
  expect((await sandbox.request('GET', '/sandbox/launches/launch_none/verdict')).status).toBe(404);
  expect((await sandbox.request('GET', `/sandbox/launches/${launchId}/verdict?format=pdf`)).status).toBe(400);
});

/** Apps with one fault each, none of which looks at the answers that would have told it. */
const faulty: [rule: string, what: string, act: (it: Stage) => Promise<unknown>, seen: RegExp][] = [
  [
    'poll-interval',
    'polls every 500 ms',
    async (it) => {
      for (let i = 0; i < 4; i++) {
        await it.poll();
        it.wait(500);
      }
    },
    /after \d{3,4} ms/,
  ],
  [
    'poll-stops',
    'polls on after APPROVED',
    async (it) => {
      await it.approved();
      for (let i = 0; i < 3; i++) {
        it.wait(2_500);
        await it.poll();
      }
    },
    /after the answer APPROVED/,
  ],
  [
    'upload-after-approval',
    'uploads before approval',
    async (it) => {
      await it.initiate();
    },
    /initiate while the operation was REQUESTED/,
  ],
  [
    'upload-after-approval',
    'uploads before it has read APPROVED',
    async (it) => {
      await it.poll();
      await it.decide('approve');
      const upload = await it.initiate();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendComplete(it.sandbox, upload, 100);
    },
    /no status answer had told/,
  ],
  [
    'no-work-after-refusal',
    'uploads after rejection',
    async (it) => {
      await it.decide('reject');
      await it.poll();
      await it.initiate();
      await sendChunk(it.sandbox, { ...it, uploadId: 'made-up', key: 'made-up' }, 1, bytes(1));
    },
    /while the operation was REJECTED/,
  ],
  [
    'no-work-after-refusal',
    'uploads after rejection that it has not read',
    async (it) => {
      await it.decide('reject');
      await it.initiate();
    },
    /while the operation was REJECTED/,
  ],
  [
    'no-work-after-refusal',
    'uploads after expiry',
    async (it) => {
      await it.sandbox.advance(31 * 60_000, it.launchId);
      await it.poll();
      await it.initiate();
    },
    /while the operation was EXPIRED/,
  ],
  [
    'chunk-order',
    'chunks out of order',
    async (it) => {
      const upload = await it.approved();
      for (const n of [1, 3, 2]) await sendChunk(it.sandbox, upload, n, bytes(n));
    },
    /chunk 3 when 2 was next/,
  ],
  [
    'chunk-order',
    'other bytes for a part that was sent',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendChunk(it.sandbox, upload, 1, bytes(2));
    },
    /other bytes for chunk 1/,
  ],
  [
    'chunk-order',
    'completes early, with the whole size',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendComplete(it.sandbox, upload, 200);
      await sendChunk(it.sandbox, upload, 2, bytes(2));
    },
    /complete of 200 bytes when 100 had come/,
  ],
  [
    'chunk-order',
    'completes early, with the size so far',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendComplete(it.sandbox, upload, 100);
      await sendChunk(it.sandbox, upload, 2, bytes(2));
    },
    /chunk 2 after complete/,
  ],
  [
    'chunk-order',
    'completes with no chunk',
    async (it) => sendComplete(it.sandbox, await it.approved(), 100),
    /complete without a chunk/,
  ],
  [
    'upload-identity',
    'changes the key midway',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      const other = { ...upload, key: 'another-key' };
      for (const n of [2, 3]) await sendChunk(it.sandbox, other, n, bytes(n));
      await sendComplete(it.sandbox, other, 300);
    },
    /the upload's uploadId and another key/,
  ],
  [
    'upload-identity',
    'changes the uploadId midway',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendChunk(it.sandbox, { ...upload, uploadId: 'another' }, 2, bytes(2));
      await sendComplete(it.sandbox, upload, 200);
    },
    /another uploadId/,
  ],
  [
    'upload-identity',
    'changes both midway',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendChunk(it.sandbox, { ...upload, uploadId: 'another', key: 'another' }, 2, bytes(2));
    },
    /no initiate of this launch/,
  ],
  [
    'upload-identity',
    'leaves the key out midway',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await it.sandbox.app('POST', `/file/${it.token}/upload/chunk`, {
        body: chunkForm({ uploadId: upload.uploadId, partNumber: 2, file: bytes(2) }),
      });
    },
    /without key/,
  ],
  [
    'upload-identity',
    'begins another upload midway and goes on with its parts there',
    async (it) => {
      const first = await it.approved();
      await sendChunk(it.sandbox, first, 1, bytes(1));
      const second = await it.initiate();
      for (const n of [2, 3]) await sendChunk(it.sandbox, second, n, bytes(n));
      await sendComplete(it.sandbox, second, 300);
    },
    /of another upload than the parts before/,
  ],
  [
    'chunk-order',
    'counts its chunks from 0',
    async (it) => {
      const upload = await it.approved();
      for (const n of [0, 1]) await sendChunk(it.sandbox, upload, n, bytes(n));
    },
    /^chunk 0$/,
  ],
  [
    'chunk-order',
    'sends other bytes for a part after it has completed',
    async (it) => {
      const upload = await it.approved();
      await sendChunk(it.sandbox, upload, 1, bytes(1));
      await sendComplete(it.sandbox, upload, 100);
      await sendChunk(it.sandbox, upload, 1, bytes(2));
    },
    /other bytes for chunk 1/,
  ],
  [
    'chunk-order',
    'sends a chunk while the one before it is under way',
    async (it) => {
      const upload = await it.approved();
      await it.sandbox.control('POST', 'faults', { endpoint: 'upload.chunk', effect: { delayMs: 3_000 } });
      const first = sendChunk(it.sandbox, upload, 1, bytes(1));
      await vi.waitUntil(
        async () => {
          const { faults } = await it.sandbox.control('GET', 'faults');
          return faults.some(({ fired }: { fired: number }) => fired > 0);
        },
        { timeout: 600_000 },
      );
      await sendChunk(it.sandbox, upload, 2, bytes(2));
      await first;
    },
    /chunk 2 (while chunk 1 was still under way|when 1 was next)/,
  ],
  [
    'token-scope',
    "uses a token with another launch's operation",
    async (it) => {
      const other = await it.sandbox.launch();
      await it.poll(it.operationId, it.token);
      await it.sandbox.app('GET', `/operation/${other.token}?operationId=${it.operationId}`);
      return other.launchId;
    },
    /the operation of another launch/,
  ],
  [
    'token-scope',
    "uses a token with another launch's upload",
    async (it) => {
      const other = await openUpload(it.sandbox);
      await it.approved();
      await sendChunk(it.sandbox, { ...other, token: it.token }, 1, bytes(1));
    },
    /the upload of another launch/,
  ],
  [
    'token-scope',
    "uses a token with another launch's key",
    async (it) => {
      const other = await openUpload(it.sandbox);
      const upload = await it.approved();
      await sendChunk(it.sandbox, { ...upload, key: other.key }, 1, bytes(1));
    },
    /the key of another launch/,
  ],
];

/** Faults that only the platform can know, because no answer shows them, with the rule that the referee in front of it names instead. */
const ofPlatformAlone: Readonly<Record<string, string>> = {
  'uploads after rejection that it has not read': 'upload-after-approval',
};

test.each(faulty)('%s: an app that %s fails it and no other rule', async (rule, what, act, seen) => {
  const it = await stage();
  const judged = await act(it);
  const { result, by, rules } = await verdictOf({
    sandbox: it.sandbox,
    launchId: typeof judged === 'string' ? judged : it.launchId,
  });
  expect(Object.entries(by).filter(([, one]) => one === 'failed' || one === 'warning')).toEqual([[rule, 'failed']]);
  expect(result).toBe('failed');
  const found = rules.find((one) => one.rule === rule)!;
  expect(found.violationCount).toBeGreaterThan(0);
  expect(found.violations[0]).toMatchObject({
    seen: expect.stringMatching(seen) as string,
    expected: expect.any(String) as string,
    advice: expect.any(String) as string,
  });
  expect(found.violations[0]!.calls.length).toBeGreaterThan(0);
  const observed = await observedBy(it, typeof judged === 'string' ? 2 : 1);
  expect(Object.keys(observed).filter((one) => observed[one] === 'failed')).toEqual([ofPlatformAlone[what] ?? rule]);
});

test('token-scope: going on with the old token after the rotated one was used', async () => {
  const it = await stage({ renewPolicy: 'rotate' });
  const renewed = (await it.sandbox.app('POST', `/token/${it.token}/renew`)).body.token;
  await it.poll(it.operationId, it.token);
  expect((await verdictOf(it)).by['token-scope']).toBe('passed');
  it.wait(2_500);
  await it.poll(it.operationId, renewed);
  // Calls that came before with the old token are no fault.
  expect((await verdictOf(it)).by['token-scope']).toBe('passed');
  it.wait(2_500);
  expect((await it.poll(it.operationId, it.token)).status).toBe(403);
  const { by, result } = await verdictOf(it);
  expect([by['token-scope'], by['poll-interval'], result]).toEqual(['failed', 'passed', 'failed']);
});

describe('no violation', () => {
  test('one re-read after the decision, whenever it comes', async () => {
    const it = await stage();
    await it.approved();
    await it.poll();
    expect((await verdictOf(it)).by).toMatchObject({ 'poll-stops': 'passed', 'poll-interval': 'not_exercised' });
    it.wait(3_000);
    await it.poll();
    expect((await verdictOf(it)).by['poll-stops']).toBe('failed');
  });

  test('a re-read that failed is tried again', async () => {
    const it = await stage();
    await it.approved();
    await it.sandbox.control('POST', 'faults', { endpoint: 'operation.status', times: 2, effect: { status: 500 } });
    for (let i = 0; i < 3; i++) await it.poll();
    expect((await verdictOf(it)).by['poll-stops']).toBe('passed');
  });

  test('a poll at once after one that failed, or whose answer was lost', async () => {
    const it = await stage();
    for (const effect of [{ status: 500 }, { dropResponse: true }, { reset: true }]) {
      await it.sandbox.control('POST', 'faults', { endpoint: 'operation.status', effect });
      await it.poll().catch(() => {});
      await it.poll();
      it.wait(3_000);
      await it.poll();
      it.wait(3_000);
      // Between the answered ones lie more than 5 s: what failed between them counts as asked.
    }
    expect((await verdictOf(it)).by['poll-interval']).toBe('passed');
  });

  test('an APPROVED whose answer was lost was not told: the upload is too early, and the next poll is no poll after the decision', async () => {
    const it = await stage();
    await it.decide('approve');
    await it.sandbox.control('POST', 'faults', { endpoint: 'operation.status', effect: { dropResponse: true } });
    await it.poll().catch(() => {});
    for (let i = 0; i < 2; i++) {
      it.wait(2_500);
      await it.poll();
    }
    expect((await verdictOf(it)).by['poll-stops']).toBe('passed');
    const early = await stage();
    await early.decide('approve');
    await early.sandbox.control('POST', 'faults', { endpoint: 'operation.status', effect: { dropResponse: true } });
    await early.poll().catch(() => {});
    await early.initiate();
    expect((await verdictOf(early)).by['upload-after-approval']).toBe('failed');
  });

  test('a chunk again, after a lost answer, a cut connection or a failure', async () => {
    const it = await stage();
    const upload = await it.approved();
    await it.sandbox.control('POST', 'faults', { endpoint: 'upload.chunk', times: 1, effect: { dropResponse: true } });
    await it.sandbox.control('POST', 'faults', {
      endpoint: 'upload.chunk',
      times: 1,
      after: 2,
      effect: { reset: true },
    });
    await it.sandbox.control('POST', 'faults', {
      endpoint: 'upload.chunk',
      times: 1,
      after: 4,
      effect: { status: 500 },
    });
    for (const n of [1, 1, 2, 2, 3, 3]) await sendChunk(it.sandbox, upload, n, bytes(n)).catch(() => {});
    await it.sandbox.control('POST', 'faults', { endpoint: 'upload.complete', effect: { dropResponse: true } });
    await sendComplete(it.sandbox, upload, 300).catch(() => {});
    expect((await sendComplete(it.sandbox, upload, 300)).status).toBe(200);
    expect((await it.sandbox.control('GET', 'faults')).faults.map(({ fired, times }) => fired === times)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(Object.values((await verdictOf(it)).by)).not.toContain('failed');
  });

  test('but a chunk that goes on over a failed one', async () => {
    const it = await stage();
    const upload = await it.approved();
    await it.sandbox.control('POST', 'faults', { endpoint: 'upload.chunk', after: 1, effect: { status: 500 } });
    for (const n of [1, 2, 3]) await sendChunk(it.sandbox, upload, n, bytes(n));
    expect((await verdictOf(it)).by['chunk-order']).toBe('failed');
  });

  test('a new operation after EXPIRED', async () => {
    const it = await stage();
    await it.sandbox.advance(31 * 60_000, it.launchId);
    await it.poll();
    const { operationId } = (await it.sandbox.app('POST', `/operation/${it.token}`, { body: { name: 'again' } })).body;
    await it.poll(operationId);
    await it.sandbox.control('POST', `operations/${operationId}/approve`);
    it.wait(2_500);
    await it.poll(operationId);
    expect(
      (await it.sandbox.app('POST', `/file/${it.token}/upload/initiate`, { body: { operationId, fileName: 'a.tif' } }))
        .status,
    ).toBe(200);
    const { by } = await verdictOf(it);
    expect(by).toMatchObject({
      'upload-after-approval': 'passed',
      'no-work-after-refusal': 'passed',
      'poll-stops': 'passed',
    });
  });

  test('a failed chunk of one operation while another one of the same launch still waits', async () => {
    const it = await stage();
    const upload = await it.approved();
    const { operationId } = (await it.sandbox.app('POST', `/operation/${it.token}`, { body: { name: 'another' } }))
      .body;
    await it.sandbox.control('POST', 'faults', { endpoint: 'upload.chunk', effect: { status: 503 } });
    for (const n of [1, 1]) await sendChunk(it.sandbox, upload, n, bytes(n));
    await it.sandbox.control('POST', `operations/${operationId}/reject`);
    await it.sandbox.control('POST', 'faults', { endpoint: 'upload.complete', effect: { status: 503 } });
    for (let i = 0; i < 2; i++) await sendComplete(it.sandbox, upload, 100);
    expect(Object.values((await verdictOf(it)).by)).not.toContain('failed');
  });

  test('a chunk that nobody read, while another operation is approved that the app has not heard of: nobody knows whose it was', async () => {
    const it = await stage();
    const upload = await it.approved();
    const { operationId } = (await it.sandbox.app('POST', `/operation/${it.token}`, { body: { name: 'another' } }))
      .body;
    await it.sandbox.control('POST', `operations/${operationId}/approve`);
    await it.sandbox.control('POST', 'faults', { endpoint: 'upload.chunk', effect: { status: 503 } });
    await sendChunk(it.sandbox, upload, 1, bytes(1));
    const [failed] = (await it.sandbox.trace(it.launchId)).filter(
      ({ endpoint, status }) => endpoint === 'upload.chunk' && status === 503,
    );
    expect(failed!.detail['operationId']).toBe(null);
    await sendChunk(it.sandbox, upload, 1, bytes(1));
    expect(Object.values((await verdictOf(it)).by)).not.toContain('failed');
  });

  test('two uploads of one operation, the first given up', async () => {
    const it = await stage();
    const first = await it.approved();
    await sendChunk(it.sandbox, first, 1, bytes(1));
    const second = await it.initiate();
    for (const n of [1, 2]) await sendChunk(it.sandbox, second, n, bytes(n));
    await sendComplete(it.sandbox, second, 200);
    expect((await verdictOf(it)).result).toBe('passed');
  });
});

test('polls too far apart: a warning, as the spec only recommends', async () => {
  const it = await stage();
  await it.poll();
  it.wait(6_000);
  await it.poll();
  const { result, by } = await verdictOf(it);
  // A sandbox that was late itself warns of nobody: "the tolerances of poll-interval" below.
  const wasLate = (await it.sandbox.trace(it.launchId)).some(({ detail }) => Number(detail['lateMs'] ?? 0) >= 200);
  const wanted = wasLate ? 'passed' : 'warning';
  expect([result, by['poll-interval']]).toEqual([wanted, wanted]);
});

describe('the tolerances of poll-interval', () => {
  const call = (id: number, at: number, durationMs: number, lateMs?: number): JudgedCall => ({
    id,
    at,
    endedAt: at + durationMs,
    endpoint: 'operation.status',
    status: 200,
    delivered: true,
    detail: { operationId: 'op', operationStatus: 'REQUESTED', ...(lateMs !== undefined && { lateMs }) },
  });
  const resultOf = (gapMs: number, durationMs: number) =>
    judge([call(1, 10_000, durationMs), call(2, 10_000 + gapMs, 1)]).rules.find(({ rule }) => rule === 'poll-interval')
      ?.result;
  test.each([
    [1_799, 0, 'failed'],
    [1_800, 0, 'passed'],
    // Slow answers: the minimum counts from start to start, the maximum from answer to start.
    [1_800, 1_700, 'passed'],
    [5_200, 0, 'passed'],
    [5_201, 0, 'warning'],
    [8_000, 3_000, 'passed'],
  ])('%d ms from start to start, the answer after %d ms: %s', (gapMs, durationMs, result) => {
    expect(resultOf(gapMs, durationMs)).toBe(result);
  });
  test('a machine that could not keep time itself holds no lateness against the app, and says so', () => {
    const judged = (first: JudgedCall, second: JudgedCall) =>
      judge([first, second]).rules.find(({ rule }) => rule === 'poll-interval');
    expect(judged(call(1, 10_000, 0), call(2, 19_000, 1, 900))).toMatchObject({
      result: 'passed',
      note: expect.stringContaining('1 of 1 intervals') as string,
    });
    expect(judged(call(1, 10_000, 0), call(2, 11_500, 1, 900))?.result).toBe('failed');
  });
});

test('as JUnit: a failed rule is a failure, one without evidence is skipped, and no text breaks out', async () => {
  const it = await stage();
  await it.initiate();
  const answer = await it.sandbox.request('GET', `/sandbox/launches/${it.launchId}/verdict?format=junit`);
  expect(answer.headers.get('content-type')).toMatch(/^application\/xml/);
  expect(answer.text).toMatch(/<testsuite name="launch_[^"]+" tests="7" failures="1" skipped="5">/);
  expect(answer.text).toContain(
    '<testcase classname="' + it.launchId + '" name="upload-after-approval (4.8, rules 1 and 3)"><failure',
  );
  expect(answer.text.match(/<skipped/g)).toHaveLength(5);
});

test('as HAR: every call with its headers and JSON bodies, tokens and key redacted', async () => {
  const it = await stage({ renewPolicy: 'rotate' });
  const renewed = (await it.sandbox.app('POST', `/token/${it.token}/renew`)).body.token;
  await it.poll(it.operationId, renewed);
  const answer = await it.sandbox.request('GET', `/sandbox/launches/${it.launchId}/trace?format=har`);
  const { log } = answer.body as unknown as {
    log: {
      entries: {
        request: {
          url: string;
          method: string;
          headers: { name: string; value: string }[];
          postData?: { text: string };
        };
        response: { status: number; content: { text?: string } };
      }[];
    };
  };
  expect(
    log.entries.map(
      ({ request }) =>
        `${request.method} ${new URL(request.url).pathname.replaceAll('%7B', '{').replaceAll('%7D', '}')}${new URL(request.url).search}`,
    ),
  ).toEqual([
    'POST /public/external-app/operation/{token}',
    'POST /public/external-app/token/{token}/renew',
    `GET /public/external-app/operation/{token}?operationId=${it.operationId}`,
  ]);
  expect(JSON.parse(log.entries[0]!.request.postData!.text)).toEqual({ name: 'judged' });
  expect(JSON.parse(log.entries[2]!.response.content.text!)).toMatchObject({
    operationId: it.operationId,
    status: 'REQUESTED',
  });
  expect(log.entries[0]!.request.headers).toContainEqual({ name: 'x-api-key', value: '[redacted]' });
  for (const secret of [it.token, renewed, apiKey]) expect(answer.text).not.toContain(secret);
});

test('it survives a restart of the sandbox', async () => {
  const first = await startSandbox({ dataDir: await testFolder() });
  const upload = await openUpload(first);
  await first.close();
  const second = await startSandbox({ dataDir: first.dataDir });
  expect((await verdictOf({ sandbox: second, launchId: upload.launchId })).by['upload-after-approval']).toBe('failed');
});

test('a chunk form whose file comes before its fields is judged all the same', async () => {
  const it = await stage();
  const { uploadId, key, token } = await it.approved();
  await it.sandbox.app('POST', `/file/${token}/upload/chunk`, {
    body: chunkForm({ file: bytes(2), uploadId, key, partNumber: 2 }),
  });
  expect((await verdictOf(it)).by['chunk-order']).toBe('failed');
});
