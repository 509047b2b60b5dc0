/** What a file of tests leaves behind in its process: timers, servers, child processes, open files, listeners. */
import { readdirSync, readlinkSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as sleep } from 'node:timers/promises';

/** Number of each kind of thing that is in use. */
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

/** PROJ keeps its database open. */
const isOurs = /^\/(?!dev\/|proc\/|.*\/proj\.db$)/;

/** Paths of the regular files that this process has open. */
function openFiles(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return isOurs.test(path) ? [path] : [];
    } catch {
      // It was closed meanwhile, such as the one that read the folder.
      return [];
    }
  });
}

/** Listeners of `exit` that a file may add: that of `scratchFolder`, which removes all folders of the process. */
const sharedExits = 1;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What is in use now and was not before, after a moment in which things may end. */
export async function leftOver(before: InUse, withinMs = 2_000): Promise<string[]> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const more = [...inUse()].flatMap(([name, count]) => {
      const extra = count - (before.get(name) ?? 0);
      return extra > (name === 'listener of exit' ? sharedExits : 0) ? [`${extra} x ${name}`] : [];
    });
    if (more.length === 0 || performance.now() > untilMs) return more;
    // A raster of GDAL that nobody refers to any more is closed by the collection.
    if (more.some((left) => left.includes('open file'))) collectGarbage();
    await sleep(20, undefined, { ref: false });
  }
}
