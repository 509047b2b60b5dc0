/** Verdicts over long traces: read in portions, with the same result as at once. */
import { expect, test } from 'vitest';
import type { Trace } from '../../src/sandbox/referee/trace.ts';
import type { TracedCall } from '../../src/sandbox/referee/traced-call.ts';
import { nothingMissing, rulesOf } from '../../src/sandbox/referee/verdict.ts';
import { Verdicts } from '../../src/sandbox/referee/verdicts.ts';
import { assumedLimits } from '../../src/contract/index.ts';

const poll = (id: number): TracedCall => ({
  id,
  at: id * 1_000,
  endedAt: id * 1_000 + 5,
  endpoint: 'operation.status',
  status: 200,
  delivered: true,
  detail: { operationId: 'op', operationStatus: 'REQUESTED', tokenNumber: 1 },
});

/** Makes a trace with a poll each second, which is too often. */
function traceOf(count: number) {
  const stored = Array.from({ length: count }, (_, i) => poll(i + 1));
  const reads: number[] = [];
  const trace = {
    extent: () => ({ oldestId: stored[0]?.id ?? 0, newestId: stored.at(-1)?.id ?? 0 }),
    missing: () => nothingMissing,
    beforeForgetting: () => {},
    calls(_launchId: string, afterId = 0, limit: number | null = null) {
      const found = stored.filter(({ id }) => id > afterId).slice(0, limit ?? undefined);
      reads.push(found.length);
      return found;
    },
  } as unknown as Trace;
  return { trace, stored, reads };
}

test('a long trace is read in portions, and other work runs between them', async () => {
  const { trace, stored, reads } = traceOf(23_000);
  const verdicts = new Verdicts(trace, rulesOf(assumedLimits));
  let turns = 0;
  const other = setInterval(() => (turns += 1), 0);
  // A call during the reading counts.
  setImmediate(() => stored.push(poll(23_001)));
  await verdicts.read(['launch']);
  clearInterval(other);
  const { verdict, count } = verdicts.of('launch');
  expect(Math.max(...reads)).toBe(5_000);
  expect(turns).toBeGreaterThan(0);
  expect(count).toBe(23_001);
  const atOnce = new Verdicts(traceOf(23_001).trace, rulesOf(assumedLimits)).of('launch');
  expect(verdict).toEqual(atOnce.verdict);
  expect(verdict.rules.find(({ rule }) => rule === 'poll-interval')).toMatchObject({ violationCount: 23_000 });
});

test('only new calls are read again, and deleted ones are forgotten', async () => {
  const { trace, stored, reads } = traceOf(3);
  const verdicts = new Verdicts(trace, rulesOf(assumedLimits));
  expect(verdicts.of('launch').count).toBe(3);
  stored.push(poll(4));
  stored.shift();
  await verdicts.read(['launch']);
  expect(verdicts.of('launch').count).toBe(3);
  expect(reads).toEqual([3, 1, 0]);
  verdicts.of('launch');
  await verdicts.read(['launch', 'launch']);
  expect(reads).toEqual([3, 1, 0]);
});

test('a launch that was evicted is judged by all its calls, and so is one whose verdict alone was kept', () => {
  const traces = new Map(['a', 'b', 'c'].map((id) => [id, traceOf(4)]));
  const trace = {
    ...traces.get('a')!.trace,
    extent: (id: string) => traces.get(id)!.trace.extent(id),
    calls: (id: string, afterId?: number, limit?: number | null) => traces.get(id)!.trace.calls(id, afterId, limit),
  } as unknown as Trace;
  for (const limits of [
    { verdicts: 1, calls: 100 },
    { verdicts: 100, calls: 6 },
  ]) {
    const verdicts = new Verdicts(trace, rulesOf(assumedLimits), limits);
    for (const id of traces.keys()) verdicts.of(id);
    // One more call of the launch that was used least recently.
    const { stored } = traces.get('a')!;
    stored.push(poll(stored.length + 1));
    const { count, verdict } = verdicts.of('a');
    const fresh = new Verdicts(trace, rulesOf(assumedLimits)).of('a');
    expect([count, verdict]).toEqual([fresh.count, fresh.verdict]);
    expect(count).toBe(stored.length);
  }
});
