import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import { operationOf } from './operation-request.ts';
import type { RunInput } from '../processing/run-input.ts';
import type { StepHost } from '../processing/step-host.ts';
import { placeRun, type PlacementSettings } from './placement.ts';
import type { RunQueue } from './run-queue.ts';
import { newRun, type Run, type RunStore } from './run.ts';

export interface NewRun {
  readonly stepId: string;
  readonly parameters: unknown;
  readonly input: RunInput;
}

export interface RunIntakeOptions {
  readonly store: RunStore;
  readonly queue: RunQueue;
  readonly steps: StepHost;
  readonly settings: {
    /** Maximum number of runs that wait for processing or are being processed. Beyond it, the engine rejects new runs. */
    readonly stepQueue: number;
    /** Maximum number of unfinished runs of one user. */
    readonly runsPerUser: number;
  };
  /** Decides which runs the app takes. */
  readonly placement: PlacementSettings;
  /** Returns the owner of a launch. Owners take turns in processing. */
  readonly ownerOf: (launchId: string) => Promise<string>;
  /** Throws `KitError` if the launch has no right to the input. Default: all inputs are allowed. */
  readonly mayUse?: (launchId: string, input: RunInput) => Promise<void>;
  readonly now: () => number;
  readonly log: { warn(facts: object, message: string): void };
}

/** Number of lookups of a run after an unanswered commit, and the pause between them. */
const looksAfterLostCommit = 5;
const lookAgainMs = 500;

/** Takes new runs in, as many as there is room for: commits each, and queues it. */
export function createRunIntake({
  store,
  queue,
  steps,
  settings,
  ownerOf,
  mayUse,
  placement,
  now,
  log,
}: RunIntakeOptions): (launchId: string, wanted: NewRun, signal?: AbortSignal) => Promise<Run> {
  /** Counts and commits the runs of one user one after the other. */
  const starting = new Map<string, Promise<unknown>>();

  async function inTurn<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const turn = (starting.get(owner) ?? Promise.resolve()).then(work, work);
    starting.set(owner, turn);
    return turn.finally(() => starting.get(owner) === turn && starting.delete(owner));
  }

  async function start(launchId: string, wanted: NewRun, signal?: AbortSignal): Promise<Run> {
    const owner = await ownerOf(launchId);
    await mayUse?.(launchId, wanted.input);
    // Before anything is looked into; and once more when it is committed.
    await requireRoom(owner);
    const {
      step,
      parameters,
      estimate,
      subject,
      grid = null,
    } = await steps.check(wanted.stepId, wanted.parameters, wanted.input, signal);
    const atMs = now();
    const needs = placeRun({ step, estimate }, placement);
    const asked = { stepVersion: step.version, input: wanted.input, parameters, estimate, needs, grid };
    const run = newRun(
      { owner, launchId, stepId: step.id, ...asked, operation: operationOf(step, { ...asked, subject }) },
      atMs,
    );
    await inTurn(owner, async () => {
      await requireRoom(owner);
      await commit(run);
    });
    // The run is committed: an error now would make the user ask twice. The engine's `recover` will queue it.
    await queue
      .add([{ runId: run.id, queueName: 'wait' }])
      .catch((error: unknown) => log.warn({ err: error, runId: run.id }, 'could not queue a new run at the moment'));
    return run;
  }

  /** Stores a new run. If the commit's response was lost, looks whether the run exists, because an error would make the user start a second run. */
  async function commit(run: Run): Promise<void> {
    try {
      await store.create(run);
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError)) throw error;
      for (let tries = 0; tries < looksAfterLostCommit; tries++) {
        await sleep(lookAgainMs);
        const found = await store.find(run.id).catch((failed: unknown) => {
          if (failed instanceof DatabaseUnavailableError) return undefined;
          throw failed;
        });
        if (found) return;
        if (found === null) throw error;
      }
      throw error;
    }
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
    const { APPROVED = 0, PROCESSING = 0 } = await store.countByState(['APPROVED', 'PROCESSING']);
    if (APPROVED + PROCESSING < settings.stepQueue) return;
    throw new KitError(
      'busy',
      `${APPROVED + PROCESSING} runs are waiting for processing, and the app takes no more at the moment; try again later`,
      { status: 503, data: { isForUser: true } },
    );
  }

  return start;
}
