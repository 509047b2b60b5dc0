import { watch } from 'chokidar';

export interface FileWatch {
  close(): Promise<void>;
}

/** Editors write a file in several steps, and a branch that is switched changes many. */
const settleMs = 200;

/**
 * Calls `onChange` when something at the paths has changed, once for changes that come together, one call at a time; what
 * changes while it runs is followed by another. A file may be written, replaced by rename, removed or made.
 */
export async function watchFiles(paths: readonly string[], onChange: () => Promise<void>): Promise<FileWatch> {
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  const watcher = watch([...paths], { ignoreInitial: true, ignored: /(^|[/\\])(\.git|\.#|#)|~$|\.sw[a-z]$/ });
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
