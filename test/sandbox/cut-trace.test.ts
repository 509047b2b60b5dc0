// @module-tag all
/** A launch with more calls than are kept: violations outlive their calls, and a trace that was cut passes nothing. */
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { SandboxClock } from '../../src/sandbox/clock.ts';
import { openSandboxDatabase } from '../../src/sandbox/database.ts';
import { CallWriter, maxOfLaunch, type NewCall } from '../../src/sandbox/referee/call-writer.ts';
import { Trace } from '../../src/sandbox/referee/trace.ts';
import { rules } from '../../src/sandbox/referee/verdict.ts';
import { Verdicts } from '../../src/sandbox/referee/verdicts.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';

const startMs = 1_700_000_000_000;
const operation = { operationId: 'op' };
const approved = { ...operation, operationStatus: 'APPROVED' };
const upload = { ...approved, uploadId: 'u', key: 'k' };

const call = (afterMs: number, endpoint: NewCall['endpoint'], detail: object = {}): NewCall => ({
  ...{ launch_id: 'launch', at: startMs + afterMs, launch_at: startMs + afterMs, endpoint, method: 'GET', status: 200 },
  ...{ duration_ms: 5, delivered: 1, request_bytes: 0, response_bytes: 0, detail: JSON.stringify(detail), path: '/' },
  ...{ request: '{}', response: '{}' },
});

/** More calls than are kept, and than are deleted together. */
const many = maxOfLaunch + 5_200;
const details = Array.from({ length: many }, (_, i) => call(100 + i, 'user.detail'));
const honestEnd = [
  call(100_000, 'operation.status', approved),
  call(100_100, 'upload.initiate', upload),
  call(100_200, 'upload.chunk', { ...upload, partNumber: 1, size: 10 }),
  call(100_300, 'upload.complete', { ...upload, fileSize: 10 }),
];

async function verdictOf(calls: readonly NewCall[]) {
  const database = openSandboxDatabase(await testFolder());
  const log = pino({ level: 'silent' });
  const writer = new CallWriter(database, log);
  const trace = new Trace(database, new SandboxClock(database, Date.now), log, (value) => value, writer);
  cleanUpLater(() => {
    trace.close();
    database.close();
  });
  const verdicts = new Verdicts(trace, rules);
  database.transaction(() => calls.forEach((one) => writer.note(one)))();
  const { verdict } = verdicts.of('launch');
  const ofRule = (id: string) => verdict.rules.find(({ rule }) => rule === id)?.result;
  return { result: verdict.result, cutCalls: verdict.cutCalls, early: ofRule('upload-after-approval') };
}

const early = call(50, 'upload.initiate', { ...operation, operationStatus: 'REQUESTED' });
const created = call(10, 'operation.create', operation);

test('a violation before fifty thousand harmless calls stays one', async () => {
  expect(await verdictOf([created, early, ...details, ...honestEnd])).toEqual({
    ...{ result: 'failed', early: 'failed' },
    cutCalls: expect.any(Number) as number,
  });
});

test('without it, what is left passes nothing', async () => {
  const { result, cutCalls, early: ofRule } = await verdictOf([created, ...details, ...honestEnd]);
  expect([result, ofRule]).toEqual(['not_exercised', 'not_exercised']);
  expect(cutCalls).toBeGreaterThan(5_000);
});

test('control: the same launch with fewer calls', async () => {
  const few = details.slice(0, 300);
  expect(await verdictOf([created, ...few, ...honestEnd])).toEqual({ result: 'passed', cutCalls: 0, early: 'passed' });
  expect((await verdictOf([created, early, ...few, ...honestEnd])).early).toBe('failed');
});
