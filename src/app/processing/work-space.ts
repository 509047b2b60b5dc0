import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { folderBytes } from '../../files/index.ts';
import { abortableSleep } from '../../platform-client/index.ts';

/** The folder that the runs of one machine work in, and what they may hold there together. */
export interface WorkSpace {
  readonly quotaBytes: number;
  /** Bytes that the runs hold. */
  used(): Promise<number>;
  /** Bytes that are still free; zero or less where it is full. */
  left(): Promise<number>;
  /** Resolves when there is room; other runs leave it as their outputs are uploaded. Rejects with the signal's reason. */
  waitForRoom(signal: AbortSignal, onFull: () => void): Promise<void>;
}

const lookAgainMs = 2_000;

export interface WorkSpaceOptions {
  readonly folder: string;
  readonly quotaBytes: number;
  /** Most bytes that one run may hold: a folder with more entries than can be counted is charged with these. Default: the quota. */
  readonly runBytes?: number;
  /** Measures a folder in bytes. Default: reads the disk. */
  readonly bytesOf?: (folder: string) => Promise<number>;
}

/** Bytes in the folders of all runs, each measured by itself: none of them can make the rest uncountable. */
async function bytesOfRuns(folder: string, runBytes: number): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  let sum = 0;
  for (const entry of entries) {
    const path = join(folder, entry.name);
    const file = entry.isDirectory() ? null : await lstat(path).catch(() => null);
    sum += Math.min(runBytes, file?.size ?? (await folderBytes(path)));
  }
  return sum;
}

export function createWorkSpace({
  folder,
  quotaBytes,
  runBytes = quotaBytes,
  bytesOf = (path) => bytesOfRuns(path, runBytes),
}: WorkSpaceOptions): WorkSpace {
  const left = async () => quotaBytes - (await bytesOf(folder));
  /** All waiting runs share one measurement of the folder. */
  let seen: { readonly untilMs: number; readonly left: Promise<number> } | null = null;
  const leftLately = () => {
    if (seen === null || performance.now() > seen.untilMs)
      seen = { untilMs: performance.now() + lookAgainMs, left: left() };
    return seen.left;
  };
  return {
    quotaBytes,
    used: () => bytesOf(folder),
    left,
    async waitForRoom(signal, onFull) {
      while ((await leftLately()) <= 0) {
        onFull();
        await abortableSleep(lookAgainMs, signal);
      }
    },
  };
}
