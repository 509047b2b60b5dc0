/** Facts from Linux's /proc about a process and everything that it has started. On other systems a tree is empty. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Not every kernel is built with it. */
const hasChildrenFiles = existsSync(`/proc/self/task/${process.pid}/children`);

/** `pid` and all its descendants that live, `pid` first. A process that gave up its parent counts as a child of whoever adopted it. */
export function processTree(pid: number): number[] {
  const childrenOf = hasChildrenFiles ? childrenByTask : childrenByScan();
  const tree = [pid];
  for (const one of tree) tree.push(...childrenOf(one));
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

/** Fields 3, 4 and 22 of `/proc/PID/stat` (proc(5)). The name of the program, in parentheses, may hold spaces and parentheses. */
function statOf(pid: number | string): { state: string; parent: number; startedAt: string } | null {
  const fields = /^.*\) (.*)$/s.exec(readText(`/proc/${pid}/stat`))?.[1]?.split(' ');
  const { 0: state, 1: parent, 19: startedAt } = fields ?? [];
  return state === undefined || startedAt === undefined ? null : { state, parent: Number(parent), startedAt };
}

export interface TreeUsage {
  readonly processes: number;
  /** Threads of all of them. */
  readonly tasks: number;
  /**
   * Resident memory of all processes together, their page tables, and the kernel's records of their locks. Pages of files
   * count once, for the process that has most of them.
   */
  readonly memoryBytes: number;
}

export function usageOf(pids: readonly number[]): TreeUsage {
  let [processes, tasks, own, files] = [0, 0, 0, 0];
  for (const pid of pids) {
    const status = readText(`/proc/${pid}/status`);
    if (status === '') continue;
    processes += 1;
    tasks += number(status, 'Threads');
    own += number(status, 'RssAnon') + number(status, 'RssShmem') + number(status, 'VmPTE');
    files = Math.max(files, number(status, 'RssFile'));
  }
  return { processes, tasks, memoryBytes: (own + files) * 1024 + lockBytesOf(pids) };
}

/** Maximum bytes in the buffers of a socket whose queues the system does not list: `net.core.wmem_default`. */
const bytesOfSocket = 212_992;

/** Estimates the memory in the sockets of a network namespace that is not this process's own: no resident size shows it. */
export function socketBytesOf(pid: number): number {
  try {
    if (readlinkSync(`/proc/${pid}/ns/net`) === readlinkSync('/proc/self/ns/net')) return 0;
  } catch {
    return 0;
  }
  const counts = readText(`/proc/${pid}/net/sockstat`) + readText(`/proc/${pid}/net/sockstat6`);
  const sockets = Number(/^sockets: used (\d+)/m.exec(counts)?.[1] ?? 0);
  const hasTcp = [...counts.matchAll(/^TCP6?: inuse (\d+)/gm)].some(([, inUse]) => Number(inUse) > 0);
  // These files list every connection, and reading them takes a while.
  const queues = hasTcp
    ? ['tcp', 'tcp6'].flatMap((name) => queuesIn(beginningOf(`/proc/${pid}/net/${name}`, maxListBytes).text))
    : [];
  return sockets * bytesOfSocket + queues.reduce((sum, bytes) => sum + bytes, 0);
}

/** Bytes that wait in the queues of each connection: `tx_queue:rx_queue`, in hexadecimal (proc(5)). */
const queuesIn = (text: string): number[] =>
  [...text.matchAll(/ ([0-9A-F]{8}):([0-9A-F]{8}) \d\d:/g)].map(
    ([, sent = '', received = '']) => Number.parseInt(sent, 16) + Number.parseInt(received, 16),
  );

/** Unit of `Stats.blocks`. */
const blockBytes = 512;

/** Bytes of files that a tree has removed and still has open: no folder shows them, and they stay on the disk. */
export async function deletedBytes(pids: readonly number[]): Promise<number> {
  const byFile = new Map<string, number>();
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    for (const name of await readdir(folder).catch(() => [])) {
      const file = await stat(join(folder, name)).catch(() => null);
      if (file?.isFile() && file.nlink === 0) byFile.set(`${file.dev} ${file.ino}`, file.blocks * blockBytes);
    }
  }
  return [...byFile.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** Kernel memory for one lock on a file. */
const bytesOfLock = 256;
/** More than any machine has. */
const endlessBytes = 2 ** 50;
/** About 15,000 locks or 7,000 connections; an honest tree has a few. */
const maxListBytes = 1024 * 1024;

/** Estimates the kernel's memory for locks on files. Endless for a tree that has most of more locks than anybody needs. */
function lockBytesOf(pids: readonly number[]): number {
  const { text, isCut } = beginningOf('/proc/locks', maxListBytes);
  const owners = [...text.matchAll(/ (?:READ|WRITE) +(\d+) /g)].map(([, pid]) => Number(pid));
  const own = new Set(pids);
  const count = owners.filter((pid) => own.has(pid)).length;
  return isCut && count > owners.length / 2 ? endlessBytes : count * bytesOfLock;
}

function beginningOf(path: string, maxBytes: number): { text: string; isCut: boolean } {
  try {
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.allocUnsafe(64 * 1024);
      let text = '';
      for (let bytes = -1; bytes !== 0 && text.length < maxBytes;) {
        bytes = readSync(file, buffer, 0, buffer.length, null);
        text += buffer.toString('latin1', 0, bytes);
      }
      return { text, isCut: text.length >= maxBytes };
    } finally {
      closeSync(file);
    }
  } catch {
    return { text: '', isCut: false };
  }
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
  for (const name of listOf('/proc').filter((one) => /^\d+$/.test(one))) {
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
