import { statfs } from 'node:fs/promises';
import { KitError } from '../contract/kit-error.ts';
import { folderUse } from '../files/index.ts';
import { heldResources, maxOfTree } from './held-resources.ts';
import { processTree, usageOf } from './process-tree.ts';
import type { FailureKind } from './protocol.ts';

/** Limits for one child together with all processes that it starts. */
export interface ChildLimits {
  /** Default 1 hour. */
  readonly timeoutMs?: number;
  /** Resident memory. Default 2 GiB. */
  readonly memoryBytes?: number;
  /** Size of the work folder. Default 64 GiB. */
  readonly diskBytes?: number;
  /** Default 64. */
  readonly processes?: number;
}

/**
 * A failure of a child that the host has found: `job_crashed`, `job_not_started`, `job_timeout`, `job_memory_exceeded`,
 * `job_disk_exceeded`, `job_processes_exceeded`, `disk_full`. What a job reports of itself is a `ReportedJobError`.
 */
export class ChildJobError extends KitError {
  readonly kind: FailureKind;

  constructor(
    code: string,
    message: string,
    { kind = 'input', data }: { kind?: FailureKind; data?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(code, message, { status: kind === 'input' ? 422 : kind === 'transient' ? 503 : 500, data });
    this.kind = kind;
  }
}

export const defaultLimits: Required<ChildLimits> = {
  timeoutMs: 3_600_000,
  memoryBytes: 2 * 1024 ** 3,
  diskBytes: 64 * 1024 ** 3,
  processes: 64,
};
/** Memory can grow by a gigabyte in a second, so the watch looks more often once half of the limit is used. */
const sampleEveryMs = 80;
const sampleOftenMs = 20;
const sampleDiskEveryMs = 200;
/** A folder that takes long to look at is looked at less often, but not so seldom that a child could hide what it writes. */
const sampleDiskAtLeastEveryMs = 1_000;
const bubblewrapOwnProcesses = 2;
/** Threads that a process may have, on average: Node has a dozen. By default fewer in all than the kernel allows (confinement.ts), so that the host sees them and says so. */
const tasksOfProcess = 15;

/** Threads of so many processes, bubblewrap's own among them. */
export function tasksOf(processes: number): number {
  return (processes + bubblewrapOwnProcesses) * tasksOfProcess;
}

export function limitError(code: string, what: string, limit: number, unit: string): ChildJobError {
  return new ChildJobError(code, `the processing ${what} the ${limit} ${unit} it may`, { data: { limit } });
}

export const diskExceeded = (diskBytes: number): ChildJobError =>
  limitError('job_disk_exceeded', 'wrote more to disk than', diskBytes, 'bytes');

/**
 * More than a library writes between two looks. A write that finds no room is lost, and not every library says so; if it
 * then removes a file of its own, there is room again, and the loss leaves no trace.
 */
const fullBytes = 16 * 1024 ** 2;
/** With less than this, looks are more often. */
const scarceBytes = 256 * 1024 ** 2;

/** Infinite where the folder is gone, as its child is then, and on a file system that does not tell. */
async function roomOn(folder: string): Promise<number> {
  const disk = await statfs(folder).catch(() => null);
  if (disk === null || disk.blocks === 0) return Infinity;
  // Only the superuser may use the blocks that are reserved for it.
  return (process.getuid?.() === 0 ? disk.bfree : disk.bavail) * disk.bsize;
}

export async function isDiskFull(folder: string): Promise<boolean> {
  return (await roomOn(folder)) < fullBytes;
}

/** Not the job's fault, whatever it said: what it wrote meanwhile may be cut short, and its result is not to be trusted. */
export function diskFull(): ChildJobError {
  return new ChildJobError('disk_full', 'the disk that the processing works on is full', { kind: 'transient' });
}

/** Use of a child and of all that it has started, as one look found it. */
export interface ChildUsage {
  /** Resident. */
  readonly memoryBytes: number;
  /** Processor time since the child's start. It never decreases. */
  readonly cpuSeconds: number;
}

export interface WatchOptions {
  /** Id of the first process. Undefined if none was started. */
  readonly pid: number | undefined;
  readonly workFolder: string;
  readonly limits: Required<ChildLimits>;
  readonly onUsage: (usage: ChildUsage) => void;
  /** Called at every look that finds a limit exceeded. */
  readonly onOver: (error: ChildJobError) => void;
}

const nameOf = { descriptors: 'descriptors', watchSets: 'sets of watches' } as const;

/** Looks again and again at what a child and all that it has started use together. */
export class LimitWatch {
  #options: WatchOptions;
  #usage: NodeJS.Timeout | undefined;
  #disk: NodeJS.Timeout | undefined;
  #spaceTimer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** The kernel's memory for the tree, as the last look at what it holds found it. */
  #kernelBytes = 0;
  /** Most memory that a look found, in bytes. */
  peakBytes = 0;
  #cpuSeconds = 0;
  /** True if a look found the disk so full that a write may have failed. */
  hasSeenScarceDisk = false;
  /** Size of the largest file that a look found. */
  largestFileBytes = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    // Starts a little later: its listener must exist first.
    this.#usage = setTimeout(() => this.#lookAtUsage(), sampleOftenMs);
    this.#disk = setTimeout(() => void this.#lookAtDisk(), sampleDiskEveryMs);
    this.#spaceTimer = setTimeout(() => void this.#checkSpace(), sampleOftenMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#usage);
    clearTimeout(this.#disk);
    clearTimeout(this.#spaceTimer);
  }

  /** Measures once, and reports the measurement. */
  measure(): { processes: number; tasks: number; usedBytes: number } {
    const { pid, onUsage } = this.#options;
    const { processes, tasks, memoryBytes, cpuSeconds } = usageOf(pid === undefined ? [] : processTree(pid));
    const usedBytes = memoryBytes + this.#kernelBytes;
    this.peakBytes = Math.max(this.peakBytes, usedBytes);
    // The time of a process is gone between its end and the moment that its parent takes note of it.
    this.#cpuSeconds = Math.max(this.#cpuSeconds, cpuSeconds);
    onUsage({ memoryBytes: usedBytes, cpuSeconds: this.#cpuSeconds });
    return { processes, tasks, usedBytes };
  }

  #lookAtUsage(): void {
    const {
      pid,
      limits: { memoryBytes, processes },
      onOver,
    } = this.#options;
    if (pid === undefined) return;
    const { usedBytes, ...used } = this.measure();
    if (usedBytes > memoryBytes)
      onOver(limitError('job_memory_exceeded', 'used more memory than', memoryBytes, 'bytes'));
    if (used.processes > processes + bubblewrapOwnProcesses || used.tasks > tasksOf(processes))
      onOver(limitError('job_processes_exceeded', 'started more processes than', processes, 'processes'));
    if (!this.#isStopped)
      this.#usage = setTimeout(() => this.#lookAtUsage(), usedBytes > memoryBytes / 2 ? sampleOftenMs : sampleEveryMs);
  }

  async #checkSpace(): Promise<void> {
    const free = await roomOn(this.#options.workFolder);
    if (this.#isStopped) return;
    if (free < fullBytes) this.#options.onOver(diskFull());
    this.hasSeenScarceDisk ||= free < 2 * fullBytes;
    this.#spaceTimer = setTimeout(() => void this.#checkSpace(), free < scarceBytes ? sampleOftenMs : sampleEveryMs);
  }

  async #lookAtDisk(): Promise<void> {
    const {
      pid,
      workFolder,
      limits: { diskBytes },
      onOver,
    } = this.#options;
    const began = performance.now();
    const { bytes: inFolder, largestFileBytes } = await folderUse(workFolder);
    const tree = pid === undefined ? [] : processTree(pid);
    const held = await heldResources(tree, { workFolder, fileBytes: diskBytes });
    this.#kernelBytes = held.kernelBytes;
    const bytes = inFolder + held.deletedBytes;
    const tookMs = performance.now() - began;
    this.largestFileBytes = Math.max(this.largestFileBytes, largestFileBytes);
    if (this.#isStopped) return;
    if (bytes > diskBytes) onOver(diskExceeded(diskBytes));
    for (const name of ['descriptors', 'watchSets'] as const)
      if (held[name] > maxOfTree[name])
        onOver(limitError('job_processes_exceeded', 'opened more than', maxOfTree[name], nameOf[name]));
    const pauseMs = Math.min(sampleDiskAtLeastEveryMs, Math.max(sampleDiskEveryMs, tookMs * 9));
    this.#disk = setTimeout(() => void this.#lookAtDisk(), pauseMs);
  }
}
