import { readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { removeFolder } from '../../raster/index.ts';
import { isFinal } from './run-state.ts';
import type { RunStore } from './run.ts';

/**
 * Where attempts work: `<run>/<claim>` each, so that what a killed one left, or still writes, is nobody else's. Other
 * processes may work in the same folder.
 */
export class WorkFolders {
  #root: string;
  #store: Pick<RunStore, 'find'>;

  constructor(root: string, store: Pick<RunStore, 'find'>) {
    this.#root = root;
    this.#store = store;
  }

  of(runId: string, claim: number): string {
    return join(this.#root, runId, String(claim));
  }

  /** Takes away what nobody owns any more: all of runs that have ended, and attempts that another has replaced. */
  async tidy(): Promise<void> {
    for (const runId of await namesIn(this.#root)) await this.tidyRun(runId);
  }

  async tidyRun(runId: string): Promise<void> {
    const folder = join(this.#root, runId);
    // Before the run is looked up: what a later claim makes meanwhile is not among them.
    const names = await namesIn(folder);
    const run = await this.#store.find(runId);
    if (!run || isFinal(run.state)) return void (await removeFolder(folder));
    const output = run.output?.path ?? '';
    const isOwned = (name: string) => name === String(run.claim) || output.startsWith(join(folder, name) + sep) || output === join(folder, name);
    for (const name of names) if (!isOwned(name)) await removeFolder(join(folder, name));
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}
