import { describe, expect, test } from 'vitest';
import { assumedLimits } from '../../src/contract/index.ts';
import { jittered, pollOperation } from '../../src/app/runs/operation-poller.ts';
import {
  assertTransition,
  IllegalTransitionError,
  isFinal,
  runStates,
  runTransitions,
} from '../../src/app/runs/run-state.ts';
import { PlatformError } from '../../src/platform-client/index.ts';

/** The states that may follow each state, by the contract. */
const moves: Readonly<Record<string, string>> = {
  CREATED: 'AWAITING_APPROVAL CANCELLED FAILED',
  AWAITING_APPROVAL: 'APPROVED REJECTED EXPIRED CANCELLED FAILED',
  APPROVED: 'PROCESSING CANCELLED FAILED',
  PROCESSING: 'UPLOADING CANCELLED FAILED',
  UPLOADING: 'COMPLETED PROCESSING CANCELLED FAILED',
  ...{ COMPLETED: '', REJECTED: '', EXPIRED: '', CANCELLED: '', FAILED: '' },
};

test('every other transition is refused, with from, to and run id', () => {
  expect(runStates.toSorted()).toEqual(Object.keys(moves).toSorted());
  for (const from of runStates) {
    for (const to of runStates) {
      const move = () => assertTransition('run-1', from, to);
      if (moves[from]!.split(' ').includes(to)) expect(move).not.toThrow();
      else
        expect(move).toThrow(
          expect.objectContaining({
            code: 'illegal_transition',
            data: { runId: 'run-1', from, to },
          }) as IllegalTransitionError,
        );
    }
  }
});

test('nothing is processed but after APPROVED: the only ways to PROCESSING lead through it', () => {
  const ways = runStates.filter((from) => runTransitions[from].includes('PROCESSING'));
  expect(ways).toEqual(['APPROVED', 'UPLOADING']);
  expect(runStates.filter((from) => runTransitions[from].includes('UPLOADING'))).toEqual(['PROCESSING']);
  expect(runStates.filter((from) => runTransitions[from].includes('APPROVED'))).toEqual(['AWAITING_APPROVAL']);
});

test('every state leads to an end', () => {
  const ends = runStates.filter(isFinal);
  expect(ends).toEqual(['COMPLETED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'FAILED']);
  for (const state of runStates.filter((one) => !isFinal(one))) {
    expect(runTransitions[state]).toEqual(expect.arrayContaining(['CANCELLED', 'FAILED']));
  }
});

describe('the poller', () => {
  test('keeps its interval within 2 to 5 s whatever the jitter', () => {
    for (const interval of [2000, 3000, 5000]) {
      for (const random of [0, 0.25, 0.5, 0.75, 1]) {
        const delay = jittered(interval, random, assumedLimits.pollIntervalMs);
        expect(delay).toBeGreaterThanOrEqual(2000);
        expect(delay).toBeLessThanOrEqual(5000);
      }
    }
    expect(new Set([0, 0.3, 0.6, 1].map((random) => jittered(3000, random, assumedLimits.pollIntervalMs))).size).toBe(
      4,
    );
  });

  const options = (answers: (string | Error)[], isPatient = true) => {
    const calls: number[] = [];
    const began = performance.now();
    return {
      calls,
      poll: (signal = new AbortController().signal) =>
        pollOperation({
          intervalMs: 2000,
          bounds: assumedLimits.pollIntervalMs,
          signal,
          onUnanswered(error) {
            if (!isPatient) throw error;
          },
          onAnswered: () => {},
          getStatus: async () => {
            calls.push(performance.now() - began);
            const answer = answers[calls.length - 1];
            if (answer === undefined || answer instanceof Error) throw answer ?? new Error('asked too often');
            return { status: answer as 'APPROVED' };
          },
        }),
    };
  };
  const away = new PlatformError('operation.status', 'internal_error', 'away', { platformStatus: 503 });
  const gone = new PlatformError('operation.status', 'operation_not_found', 'gone', { platformStatus: 404 });

  test.concurrent.each(['APPROVED', 'REJECTED', 'EXPIRED'])('stops at %s, and asks not once more', async (status) => {
    const { poll, calls } = options([away, 'REQUESTED', status]);
    expect(await poll()).toBe(status);
    expect(calls).toHaveLength(3);
    calls.reduce((before, at) => (expect(at - before).toBeGreaterThanOrEqual(1990), at), 0);
  });

  test.concurrent('throws what cannot get better at once, and what can after its time', async () => {
    await expect(options([gone]).poll()).rejects.toBe(gone);
    await expect(options([away, away], false).poll()).rejects.toBe(away);
  });

  test.concurrent('stops when it is aborted, with the reason', async () => {
    const abort = new AbortController();
    const { poll, calls } = options(['REQUESTED']);
    setTimeout(() => abort.abort(new Error('enough')), 100);
    await expect(poll(abort.signal)).rejects.toThrow('enough');
    expect(calls).toEqual([]);
  });
});
