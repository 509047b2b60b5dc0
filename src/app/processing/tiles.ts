import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChildJobError } from '../../child/index.ts';
import { removeFolder } from '../../files/index.ts';
import { isCommand } from '../../steps/command.ts';
import type { AnyStep } from '../../steps/step.ts';
import { partFolder, type FinishedTile, type KeptTiles } from './kept-tiles.ts';
import type { Tile } from './plan-tiles.ts';
import type { ExecutedStep, StepUsage } from './step-executor.ts';
import { moveOutputs, requireOutputs } from './take-outputs.ts';

/** Attempts at one tile whose executor was lost. */
const maxAttempts = 4;
const pauseMs = 1_000;

/** True if several jobs can compute the rows of the step's outputs. A program computes all of them. */
export const canBeTiled = (step: AnyStep): boolean => step.isTiled === true && !isCommand(step);

/** The output files of a tile, by their names. */
export interface TilePart {
  readonly from: number;
  readonly paths: ReadonlyMap<string, string>;
}

export interface TilesOptions {
  readonly step: AnyStep;
  /** Folders of the tiles, and those that earlier attempts have finished. */
  readonly kept: KeptTiles;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, note: string | null, tiles: string) => void;
  /** Computes a tile in a folder, in the place that it waits for; `onBegun` when it has that. */
  readonly run: (tile: Tile, folder: string, signal: AbortSignal, onBegun: () => void) => Promise<ExecutedStep>;
}

/**
 * Computes the tiles that no earlier attempt has finished, as many at once as there are places. A tile whose executor was lost is
 * computed again, alone. Rejects with the first other failure, after all others have ended.
 */
export async function runTiles(
  tiles: readonly Tile[],
  { step, kept, signal, onProgress, run }: TilesOptions,
): Promise<{ parts: TilePart[]; usages: StepUsage[] }> {
  const states = tiles.map(() => 'w');
  const show = (number: number, state: string) => {
    states[number] = state;
    const done = states.filter((letter) => letter === 'd').length;
    const running = states.filter((letter) => letter === 'r').length;
    const note = `${done} of ${tiles.length} tiles are done${running > 0 ? `, ${running} in progress` : ''}`;
    onProgress(done / tiles.length, note, states.join(''));
  };
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const compute = async (tile: Tile): Promise<FinishedTile> => {
    const own = kept.folderOf(tile);
    for (let attempt = 1; ; attempt++) {
      try {
        const executed = await run(tile, own, either, () => show(tile.number, 'r'));
        const finished = { paths: await takePart(step, own), usage: executed.usage };
        await kept.keep(tile, finished, executed.sent);
        show(tile.number, 'd');
        return finished;
      } catch (error) {
        either.throwIfAborted();
        const isLost = error instanceof ChildJobError && error.kind === 'transient';
        if (!isLost || attempt === maxAttempts) throw error;
        show(tile.number, 'w');
        await removeFolder(own);
        await sleep(pauseMs, undefined, { signal: either });
      }
    }
  };
  const finished = await kept.take(tiles, either);
  for (const { number } of finished.keys()) show(number, 'd');
  const part = async (tile: Tile) => {
    const { paths, usage } = finished.get(tile) ?? (await compute(tile));
    return { part: { from: tile.from, paths }, usage };
  };
  const computed = tiles.map((tile) =>
    part(tile).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  // The first failure ends the others, whose folders and jobs must be gone before the run goes on.
  await Promise.allSettled(computed);
  signal.throwIfAborted();
  failed.signal.throwIfAborted();
  const results = await Promise.all(computed);
  return {
    parts: results.map(({ part }) => part),
    usages: results.map(({ usage }) => usage),
  };
}

/** Takes the files of a tile. Throws `KitError` for a missing one. */
async function takePart(step: AnyStep, folder: string): Promise<ReadonlyMap<string, string>> {
  const paths = await moveOutputs(step, join(folder, 'step'), join(folder, partFolder));
  requireOutputs(step, paths);
  await removeFolder(join(folder, 'step'));
  return paths;
}

/** The use of several jobs together. */
export function sumOfUsages(usages: readonly StepUsage[]): StepUsage {
  const places = [...new Set(usages.map(({ place }) => place))];
  return {
    cpuSeconds: usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    peakMemoryBytes: Math.max(0, ...usages.map(({ peakMemoryBytes }) => peakMemoryBytes)),
    place: places.length > 3 ? `${places.length} machines` : places.join(', '),
  };
}
