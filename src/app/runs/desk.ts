/** Reports about runs and workers for operators (docs/monitor.md). */
import { isFinal, runStates, type RunState } from './run-state.ts';
import { fits, needsInWords, unlimitedPlace } from './placement.ts';
import type { Run, RunStore, RunUsage, WorkerView } from './run.ts';

const iso = (ms: number) => new Date(ms).toISOString();

/** A length of time for people, such as `90 s` or `5 min`. */
export function spanOf(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

export interface FleetStatus {
  readonly workers: readonly WorkerView[];
  /** States with runs. `oldestSeconds`: the longest time that a run has been in an unfinished state. */
  readonly runs: readonly {
    readonly state: RunState;
    readonly number: number;
    readonly oldestSeconds: number | null;
  }[];
  /** Waiting runs that no living worker can do. */
  readonly stranded: readonly string[];
}

export async function statusOf(store: RunStore, nowMs: number): Promise<FleetStatus> {
  const [workers, counts, oldest, stranded] = await Promise.all([
    store.listWorkers(),
    store.countByState(),
    store.oldestByState(),
    store.listStranded(0),
  ]);
  return {
    workers,
    runs: runStates.flatMap((state) => {
      const [number, since] = [counts[state] ?? 0, oldest[state]];
      if (number === 0) return [];
      return [{ state, number, oldestSeconds: since === undefined ? null : Math.max(0, (nowMs - since) / 1_000) }];
    }),
    stranded,
  };
}

/** One run with its history over all processes. Times in ISO 8601 UTC. */
export interface RunCase {
  readonly run: Pick<Run, 'id' | 'state' | 'failure' | 'operationId' | 'launchId'> & { readonly step: string };
  readonly owner: string;
  readonly states: readonly { readonly at: string; readonly state: RunState }[];
  readonly stages: readonly {
    readonly state: RunState;
    readonly attempt: number;
    readonly worker: string;
    readonly begunAt: string;
    readonly endedAt: string | null;
    readonly outcome: string | null;
  }[];
  /** Reason why the run waits. Null if it does not wait, or if its wait is normal. */
  readonly waitsFor: string | null;
  /** Needs of the run, in words. Null: any worker will do. */
  readonly needs: string | null;
  readonly usage: RunUsage | null;
}

/** Null if there is no such run. */
export async function caseOf(store: RunStore, id: string): Promise<RunCase | null> {
  const run = await store.find(id);
  if (!run) return null;
  const [history, stages, workers] = await Promise.all([store.history(id), store.stages(id), store.listWorkers()]);
  const { state, failure, operationId, launchId, stepId, stepVersion, owner, needs } = run;
  const living = workers.filter(({ isAlive }) => isAlive);
  const able = living.filter(({ can }) => can === null || can.includes(`${stepId}@${stepVersion}`));
  const fitting = able.filter(({ place }) => fits(needs, place ?? unlimitedPlace));
  const isBegun = stages.at(-1)?.endedAtMs === null;
  const waitsFor = () => {
    // With SQLite, the one process of the app has no lease.
    if (isFinal(state) || isBegun || workers.length === 0) return null;
    if (living.length === 0) return 'no worker is alive';
    if (able.length === 0) return `no living worker has the step ${stepId} ${stepVersion}`;
    if (fitting.length === 0) return `no living worker with its step has ${needsInWords(needs)}`;
    return fitting.every(({ rests }) => rests) ? 'every worker that could do it is drained' : null;
  };
  return {
    run: { id, state, failure, operationId, launchId, step: `${stepId}@${stepVersion}` },
    owner,
    states: history.map(({ state: reached, atMs }) => ({ at: iso(atMs), state: reached })),
    stages: stages.map(({ begunAtMs, endedAtMs, ...stage }) => ({
      ...stage,
      begunAt: iso(begunAtMs),
      endedAt: endedAtMs === null ? null : iso(endedAtMs),
    })),
    waitsFor: waitsFor(),
    needs: needsInWords(needs),
    usage: run.usage,
  };
}
