import { isAbsolute, relative, sep } from 'node:path';
import { watch } from 'chokidar';

export interface FileWatch {
  close(): Promise<void>;
}

/** Editors write a file in several steps, and a branch that is switched changes many. */
const settleMs = 200;

/**
 * Calls `onChange` when something at the paths below `root` has changed, once for changes that come together, one call at a time; what
 * changes while it runs is followed by another. A file may be written, replaced by rename, removed or made.
 */
export async function watchFiles(
  root: string,
  paths: readonly string[],
  onChange: () => Promise<void>,
  onProblem: (error: unknown) => void,
): Promise<FileWatch> {
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  const isPassing = (path: string) =>
    (isAbsolute(path) ? relative(root, path) : path)
      .split(sep)
      .some((name) => /^(\.git$|\.#|#)|~$|\.sw[a-z]$/.test(name));
  const watcher = watch([...paths], { cwd: root, ignoreInitial: true, ignored: isPassing });
  watcher.on('error', onProblem);
  watcher.on('all', () => {
    clearTimeout(timer);
    timer = setTimeout(() => (last = last.then(onChange)), settleMs);
  });
  await new Promise<void>((resolve) => watcher.once('ready', resolve));
  return {
    async close() {
      clearTimeout(timer);
      await watcher.close();
      await last;
    },
  };
}
