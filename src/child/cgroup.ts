import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** One child's control group: the kernel itself holds the child's whole tree to the limits. */
export interface ChildGroup {
  /** Puts a process in; what it starts later is in by itself. */
  add(pid: number): void;
  /** True where the kernel has ended a process of the group for want of memory. */
  ranOutOfMemory(): boolean;
  /** Takes the group away when its processes are gone. */
  remove(): void;
}

export interface GroupLimits {
  readonly memoryBytes: number;
  /** Threads count. */
  readonly tasks: number;
}

const controllers = ['memory', 'pids'];

/**
 * Control groups (version 2) where the operator has delegated some: the server's own is a leaf, and its parent, without a
 * process in it, may be written to; as a systemd unit has it with `Delegate=memory pids` and `DelegateSubgroup=server`.
 * Null elsewhere: the limits are those that are watched.
 */
export function delegatedGroups(
  mount = '/sys/fs/cgroup',
  self = '/proc/self/cgroup',
): ((limits: GroupLimits) => ChildGroup | null) | null {
  try {
    const own = /^0::(\/.+)$/m.exec(readFileSync(self, 'utf8'))?.[1];
    if (own === undefined) return null;
    const parent = join(mount, dirname(own));
    accessSync(parent, constants.W_OK);
    const read = (name: string) => readFileSync(join(parent, name), 'utf8').trim().split(/\s+/);
    if (
      !controllers.every((controller) => read('cgroup.controllers').includes(controller)) ||
      read('cgroup.procs').some((pid) => pid !== '')
    )
      return null;
    const missing = controllers.filter((controller) => !read('cgroup.subtree_control').includes(controller));
    if (missing.length > 0)
      writeFileSync(join(parent, 'cgroup.subtree_control'), missing.map((controller) => `+${controller}`).join(' '));
    return (limits) => makeGroup(join(parent, `marketplace-app-kit-${randomUUID()}`), limits);
  } catch {
    return null;
  }
}

function makeGroup(folder: string, { memoryBytes, tasks }: GroupLimits): ChildGroup | null {
  const write = (name: string, value: string | number) => writeFileSync(join(folder, name), String(value));
  try {
    mkdirSync(folder);
    write('memory.max', memoryBytes);
    write('memory.swap.max', 0);
    // One end for all: half a tree is of no use.
    write('memory.oom.group', 1);
    write('pids.max', tasks);
  } catch {
    remove(folder);
    return null;
  }
  return {
    add(pid) {
      try {
        write('cgroup.procs', pid);
      } catch {
        // It has ended already; or it may not be moved, and is watched like any other.
      }
    },
    ranOutOfMemory() {
      try {
        return Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(folder, 'memory.events'), 'utf8'))?.[1] ?? 0) > 0;
      } catch {
        return false;
      }
    },
    remove: () => remove(folder),
  };
}

function remove(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Not there, or a process is about to end in it: the unit takes it away with itself.
  }
}
