/** Facts from Linux's /proc about what a tree of processes holds and no folder and no resident size shows. On other systems it holds nothing. */
import { open, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { livingTask } from './process-tree.ts';

export interface HeldResources {
  /** Bytes of files that were removed, and that the tree still has open or mapped. */
  readonly deletedBytes: number;
  /** The kernel's memory for sockets, locks and mappings, estimated. */
  readonly kernelBytes: number;
  /** Descriptors of all processes; sets of watches (epoll) among them. The kernel limits watches for the server's user as a whole. */
  readonly descriptors: number;
  readonly watchSets: number;
}

/** No tree may have more: counting them would take the server's time. An honest one has some hundred. */
export const maxOfTree = { descriptors: 4_096, watchSets: 128 } as const;

/** Unit of `Stats.blocks`. */
const blockBytes = 512;
/** Maximum bytes in the buffers of a socket: `net.core.wmem_default`. */
const bytesOfSocket = 212_992;
const bytesOfLock = 256;
const bytesOfMapping = 256;
/** `vm.max_map_count` of one process. */
const maxMappings = 65_530;
/** An honest process has a thousand mappings, of a hundred bytes each. */
const maxListBytes = 1024 * 1024;
/** Locks are read once for all trees, and not more often: each read of the list walks over all locks of the machine. */
const locksAgeMs = 1_000;
const maxLockListBytes = 256 * 1024;

interface Counted {
  deletedBytes: number;
  descriptors: number;
  watchSets: number;
  mappings: number;
  readonly sockets: Set<string>;
  /** Removed files, by device and inode. */
  readonly deleted: Set<string>;
}

/** `fileBytes`: the limit for one file, which counts for a removed file that is mapped and not open. */
export async function heldResources(
  pids: readonly number[],
  { workFolder, fileBytes }: { readonly workFolder: string; readonly fileBytes: number },
): Promise<HeldResources> {
  const counted: Counted = {
    ...{ deletedBytes: 0, descriptors: 0, watchSets: 0, mappings: 0 },
    ...{ sockets: new Set<string>(), deleted: new Set<string>() },
  };
  const tasks = pids.map(livingTask);
  for (const task of tasks) await countDescriptors(join(task, 'fd'), counted);
  for (const task of tasks) await countMappings(join(task, 'maps'), counted, { workFolder, fileBytes });
  const { deletedBytes, descriptors, watchSets, mappings, sockets } = counted;
  const kernelBytes = sockets.size * bytesOfSocket + mappings * bytesOfMapping + (await lockBytesOf(pids));
  return { deletedBytes, kernelBytes, descriptors, watchSets };
}

async function countDescriptors(folder: string, counted: Counted): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  counted.descriptors += names.length;
  for (const name of names) {
    if (counted.descriptors > maxOfTree.descriptors) return;
    const target = await readlink(join(folder, name)).catch(() => '');
    if (target === 'anon_inode:[eventpoll]') counted.watchSets += 1;
    if (target.startsWith('socket:')) counted.sockets.add(target);
    if (target.endsWith(' (deleted)')) await countDeleted(join(folder, name), counted);
  }
}

async function countDeleted(path: string, counted: Counted): Promise<void> {
  const file = await stat(path).catch(() => null);
  if (!file?.isFile() || file.nlink > 0 || counted.deleted.has(String(file.ino))) return;
  counted.deleted.add(String(file.ino));
  counted.deletedBytes += file.blocks * blockBytes;
}

/** A line of `maps` (proc(5)): address, permissions, offset, device, inode and path. */
const removedMapping = /^\S+ \S+ \S+ \S+ (\d+) +(.+) \(deleted\)$/gm;

async function countMappings(
  path: string,
  counted: Counted,
  { workFolder, fileBytes }: { readonly workFolder: string; readonly fileBytes: number },
): Promise<void> {
  const { text, isCut } = await beginningOf(path, maxListBytes);
  counted.mappings += isCut ? maxMappings : text.split('\n').length - 1;
  for (const [, inode = '', file = ''] of text.matchAll(removedMapping)) {
    if (!file.startsWith(workFolder) || counted.deleted.has(inode)) continue;
    counted.deleted.add(inode);
    // Only root could look at the file itself.
    counted.deletedBytes += fileBytes;
  }
}

let locks: { readonly untilMs: number; readonly byPid: Promise<ReadonlyMap<number, number>> } | null = null;

async function lockBytesOf(pids: readonly number[]): Promise<number> {
  if (locks === null || performance.now() > locks.untilMs)
    locks = { untilMs: performance.now() + locksAgeMs, byPid: countLocks() };
  const byPid = await locks.byPid;
  return pids.reduce((sum, pid) => sum + (byPid.get(pid) ?? 0), 0) * bytesOfLock;
}

/** Locks by process. In a list that was cut, those of a process count as many times as the whole may be longer. */
async function countLocks(): Promise<ReadonlyMap<number, number>> {
  const { text, isCut } = await beginningOf('/proc/locks', maxLockListBytes);
  const byPid = new Map<number, number>();
  for (const [, pid] of text.matchAll(/ (?:READ|WRITE) +(-?\d+) /g))
    byPid.set(Number(pid), (byPid.get(Number(pid)) ?? 0) + 1);
  if (isCut) for (const [pid, count] of byPid) if (count > manyLocks) byPid.set(pid, count * manyLocks);
  return byPid;
}

/** No honest process has so many. */
const manyLocks = 1_000;

async function beginningOf(path: string, maxBytes: number): Promise<{ text: string; isCut: boolean }> {
  const file = await open(path).catch(() => null);
  if (file === null) return { text: '', isCut: false };
  try {
    const buffer = Buffer.allocUnsafe(64 * 1024);
    let text = '';
    for (let bytes = -1; bytes !== 0 && text.length < maxBytes;) {
      bytes = (await file.read(buffer, 0, buffer.length, null)).bytesRead;
      text += buffer.toString('latin1', 0, bytes);
    }
    return { text, isCut: text.length >= maxBytes };
  } catch {
    // The process has ended.
    return { text: '', isCut: false };
  } finally {
    await file.close();
  }
}
