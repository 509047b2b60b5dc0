/** Facts from Linux's /proc about a process and everything that it has started. On other systems a tree is empty. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Not every kernel is built with it. */
const hasChildrenFiles = existsSync(`/proc/self/task/${process.pid}/children`);

/** `pid` and all its descendants that live, `pid` first. A process that gave up its parent counts as a child of whoever adopted it. */
export function processTree(pid: number): number[] {
  const childrenOf = hasChildrenFiles ? childrenByTask : childrenByScan();
  const tree = [pid];
  for (const value of tree) tree.push(...childrenOf(value));
  return tree;
}

/** A process, with the time of its start: the kernel may give its number to another. */
export interface KnownProcess {
  readonly pid: number;
  readonly startedAt: string;
}

/** Returns the first child of a process, or null. */
export function firstChildOf(pid: number): KnownProcess | null {
  const [child] = (hasChildrenFiles ? childrenByTask : childrenByScan())(pid);
  const startedAt = child === undefined ? null : statOf(child)?.startedAt;
  return child === undefined || !startedAt ? null : { pid: child, startedAt };
}

/** True if the process is gone or a zombie. The first process of a PID namespace becomes a zombie after all others of the namespace have ended. */
export function hasEnded({ pid, startedAt }: KnownProcess): boolean {
  const stat = statOf(pid);
  return stat?.startedAt !== startedAt || stat.state === 'Z' || stat.state === 'X';
}

interface ProcessStat {
  readonly state: string;
  readonly parent: number;
  /** Processor time of the process and of its ended children, in clock ticks. */
  readonly ticks: number;
  readonly startedAt: string;
}

/** Fields 3, 4, 14 to 17 and 22 of `/proc/PID/stat` (proc(5)). The name of the program, in parentheses, may hold spaces and parentheses. */
function statOf(pid: number | string): ProcessStat | null {
  const fields = /^.*\) (.*)$/s.exec(readText(`/proc/${pid}/stat`))?.[1]?.split(' ');
  const { 0: state, 1: parent, 19: startedAt } = fields ?? [];
  if (!fields || state === undefined || startedAt === undefined) return null;
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { state, parent: Number(parent), ticks, startedAt };
}

export interface TreeUsage {
  readonly processes: number;
  /** Threads of all of them. */
  readonly tasks: number;
  /**
   * Memory of all processes together, resident or swapped out, and their page tables. Pages of files count once, for the
   * process that has most of them.
   */
  readonly memoryBytes: number;
  /** Processor time of all processes, and of those that have ended and whose parent lives. */
  readonly cpuSeconds: number;
}

/** The unit of times in `/proc`. It is the same on every Linux (`USER_HZ`). */
const ticksPerSecond = 100;

/** Memory that a process has for itself, its page tables and what was swapped out included. */
const ownMemory = ['RssAnon', 'RssShmem', 'VmPTE', 'VmSwap', 'HugetlbPages'];

export function usageOf(pids: readonly number[]): TreeUsage {
  let [processes, tasks, own, files, ticks] = [0, 0, 0, 0, 0];
  for (const pid of pids) {
    const status = readText(`${livingTask(pid)}/status`);
    if (status === '') continue;
    processes += 1;
    tasks += number(status, 'Threads');
    for (const field of ownMemory) own += number(status, field);
    files = Math.max(files, number(status, 'RssFile'));
    ticks += statOf(pid)?.ticks ?? 0;
  }
  return { processes, tasks, memoryBytes: (own + files) * 1024, cpuSeconds: ticks / ticksPerSecond };
}

/**
 * Folder of `/proc` with the facts about a process. If its first thread has ended and others go on, the process's own folder
 * has none, and that of another thread has.
 */
export function livingTask(pid: number): string {
  const own = `/proc/${pid}`;
  const stat = statOf(pid);
  if (stat?.state !== 'Z') return own;
  const living = listOf(`${own}/task`).find((task) => statOf(`${pid}/task/${task}`)?.state !== 'Z');
  return living === undefined ? own : `${own}/task/${living}`;
}

/** Memory is in KiB there. */
function number(status: string, field: string): number {
  const at = status.indexOf(`\n${field}:`);
  return at < 0 ? 0 : Number.parseInt(status.slice(at + field.length + 2, at + field.length + 40), 10) || 0;
}

function childrenByTask(pid: number): number[] {
  return listOf(`/proc/${pid}/task`).flatMap((task) =>
    readText(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number),
  );
}

/** By asking every process of the machine for its parent. */
function childrenByScan(): (pid: number) => number[] {
  const byParent = new Map<number, number[]>();
  for (const name of listOf('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const parent = statOf(name)?.parent ?? NaN;
    byParent.set(parent, [...(byParent.get(parent) ?? []), Number(name)]);
  }
  return (pid) => byParent.get(pid) ?? [];
}

/** Processes come and go while they are looked at. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function listOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
