/** Finds resources that a test file leaves open in its process: timers, servers, child processes, files and listeners. */
import { readdirSync, readlinkSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as sleep } from 'node:timers/promises';

/** Number of resources in use, by kind. */
export type InUse = ReadonlyMap<string, number>;

/** Kinds of Node's resources that keep a process alive. Sockets are not among them: Node keeps connections for the next request. */
const kinds: ReadonlySet<string> = new Set(['Timeout', 'Immediate', 'TCPServerWrap', 'ProcessWrap', 'FSEventWrap']); // oxfmt-ignore

export function inUse(): InUse {
  const names = [
    ...process.getActiveResourcesInfo().filter((kind) => kinds.has(kind)),
    ...openFiles().map((path) => `open file ${path}`),
    ...process
      .eventNames()
      .flatMap((event) => process.listeners(event as 'exit').map(() => `listener of ${String(event)}`)),
  ];
  return new Map([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
}

/** All paths except devices, `/proc`, and the database that PROJ keeps open. */
const isOurs = /^\/(?!dev\/|proc\/|.*\/proj\.db$)/;

/** Paths of the files that this process has open. Empty on systems other than Linux. */
function openFiles(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return isOurs.test(path) ? [path] : [];
    } catch {
      // This descriptor was closed since the folder was read.
      return [];
    }
  });
}

/** A test file may add one listener of `exit`: `scratchFolder` uses one for all folders of the process. */
const sharedExits = 1;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Returns the resources that are in use now and were not in use before. Waits up to `withinMs` for them to end: a browser takes its time on a busy machine. */
export async function leftOver(before: InUse, withinMs = 15_000): Promise<string[]> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const more = [...inUse()].flatMap(([name, count]) => {
      const extra = count - (before.get(name) ?? 0);
      return extra > (name === 'listener of exit' ? sharedExits : 0) ? [`${extra} x ${name}`] : [];
    });
    if (more.length === 0 || performance.now() > untilMs) return more;
    // The garbage collection closes GDAL's rasters that nothing refers to.
    if (more.some((left) => left.includes('open file'))) collectGarbage();
    await sleep(20, undefined, { ref: false });
  }
}
