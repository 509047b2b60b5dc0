import { KitError } from '../../contract/index.ts';
import type { AnyStep, StepEstimate } from '../../steps/step.ts';

/** Needs of a run: its machine must have all of them. 0: any machine will do. */
export interface RunNeeds {
  /** Kind of machine. Null: every machine will do. */
  readonly label: string | null;
  readonly memoryBytes: number;
  readonly cores: number;
  readonly diskBytes: number;
}

/** Sizes of a worker, for one run. Null: as much as a run needs. */
export interface WorkerPlace {
  readonly labels: readonly string[];
  readonly memoryBytes: number | null;
  readonly cores: number | null;
  readonly diskBytes: number | null;
}

export const noNeeds: RunNeeds = { label: null, memoryBytes: 0, cores: 0, diskBytes: 0 };
export const unlimitedPlace: WorkerPlace = { labels: [], memoryBytes: null, cores: null, diskBytes: null };

/** The needs of a run, from its step's declaration and its estimate, or else its limit. A step is not given more than its limit, whatever its estimate says. */
function needsOf(
  { requires = {} }: Pick<AnyStep, 'requires'>,
  estimate: StepEstimate | null,
  limitBytes: number,
): RunNeeds {
  const expectedBytes = estimate?.memoryBytes ?? (Number.isFinite(limitBytes) ? limitBytes : 0);
  return {
    label: requires.label ?? null,
    memoryBytes: Math.ceil(Math.max(requires.memoryBytes ?? 0, Math.min(expectedBytes, limitBytes))),
    cores: requires.cores ?? 0,
    diskBytes: requires.diskBytes ?? 0,
  };
}

const gib = (bytes: number) => `${Number((bytes / 1024 ** 3).toPrecision(2))} GiB`;

/** Describes the needs, such as `the label gpu and 4 GiB of memory`. Null if there are none. */
export function needsInWords({ label, memoryBytes, cores, diskBytes }: RunNeeds): string | null {
  const parts = [
    label === null ? null : `the label ${label}`,
    memoryBytes === 0 ? null : `${gib(memoryBytes)} of memory`,
    cores === 0 ? null : cores === 1 ? '1 core' : `${cores} cores`,
    diskBytes === 0 ? null : `${gib(diskBytes)} of disk`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : new Intl.ListFormat('en').format(parts);
}

/** True if the place has all that the run needs. */
export function fits(needs: RunNeeds, place: WorkerPlace): boolean {
  return (
    (needs.label === null || place.labels.includes(needs.label)) &&
    needs.memoryBytes <= (place.memoryBytes ?? Infinity) &&
    needs.cores <= (place.cores ?? Infinity) &&
    needs.diskBytes <= (place.diskBytes ?? Infinity)
  );
}

/** Settings that decide which runs an app takes. */
export interface PlacementSettings {
  /** Other workers may come. */
  readonly isShared: boolean;
  /** Sizes of this process. */
  readonly place: WorkerPlace;
  /** Memory limit of a step, in bytes. */
  readonly limitBytes: number;
}

/** The needs of a new run. Throws `NoFittingWorkerError` if the one process of the app lacks them: no other will come. */
export function placeRun(
  { step, estimate }: { readonly step: Pick<AnyStep, 'requires'>; readonly estimate: StepEstimate | null },
  { isShared, place, limitBytes }: PlacementSettings,
): RunNeeds {
  const needs = needsOf(step, estimate, limitBytes);
  if (!isShared && !fits(needs, place)) throw new NoFittingWorkerError(needs);
  return needs;
}

/** No worker has what the run needs. */
export class NoFittingWorkerError extends KitError {
  constructor(needs: RunNeeds) {
    super('no_fitting_worker', `the app has no worker with ${needsInWords(needs) ?? 'what the run needs'}`, {
      status: 503,
      data: { isForUser: true },
    });
  }
}
