import { randomBytes, randomUUID } from 'node:crypto';
import { KitError } from '../../contract/index.ts';
import type { NewRun, RunEngineOptions } from './run-engine.ts';
import { operationOf } from './operation-request.ts';
import { notBegun, type Run } from './run.ts';

/** Takes new runs in, as many as there is room for: commits each, and queues it. */
export function createRunIntake({
  store,
  queue,
  steps,
  settings,
  ownerOf,
  mayUse,
  now,
  log,
}: RunEngineOptions): (launchId: string, wanted: NewRun) => Promise<Run> {
  /** Counts and commits the runs of one user one after the other. */
  const starting = new Map<string, Promise<unknown>>();

  async function inTurn<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const turn = (starting.get(owner) ?? Promise.resolve()).then(work, work);
    starting.set(owner, turn);
    return turn.finally(() => starting.get(owner) === turn && starting.delete(owner));
  }

  async function start(launchId: string, wanted: NewRun): Promise<Run> {
    const owner = await ownerOf(launchId);
    await mayUse?.(launchId, wanted.input);
    // Before anything is looked into; and once more when it is committed.
    await requireRoom(owner);
    const { step, parameters, estimate } = await steps.check(wanted.stepId, wanted.parameters, wanted.input);
    const atMs = now();
    const asked = { stepVersion: step.version, input: wanted.input, parameters, estimate };
    const run: Run = {
      id: randomBytes(16).toString('base64url'),
      owner,
      launchId,
      state: 'CREATED',
      stepId: step.id,
      ...asked,
      idempotencyKey: randomUUID(),
      operation: operationOf(step, asked),
      ...notBegun,
      createdAtMs: atMs,
      updatedAtMs: atMs,
    };
    await inTurn(owner, async () => {
      await requireRoom(owner);
      await store.create(run);
    });
    // The run is committed: an error now would make the user ask twice. The engine's `recover` will queue it.
    await queue
      .add([{ runId: run.id, lane: 'wait', behind: 0 }])
      .catch((error: unknown) => log.warn({ err: error, runId: run.id }, 'could not queue a new run at the moment'));
    return run;
  }

  async function requireRoom(owner: string): Promise<void> {
    const open = await store.countUnfinishedOf(owner);
    if (open >= settings.runsPerUser) {
      throw new KitError(
        'too_many_runs',
        `you have ${open} runs that have not ended, and the app takes no more than ${settings.runsPerUser}; decide on one that waits, cancel one, or wait until one has ended`,
        { status: 429, data: { isForUser: true } },
      );
    }
    const { APPROVED = 0, PROCESSING = 0 } = await store.countByState();
    if (APPROVED + PROCESSING < settings.stepQueue) return;
    throw new KitError(
      'busy',
      `${APPROVED + PROCESSING} runs are waiting for processing, and the app takes no more at the moment; try again later`,
      { status: 503, data: { isForUser: true } },
    );
  }

  return start;
}
