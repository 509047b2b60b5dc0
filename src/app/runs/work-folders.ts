import { createHash } from 'node:crypto';
import { open, readdir, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { codeOf, identityOf, removeFolder, type FileIdentity } from '../../files/index.ts';
import { isFinal } from './run-state.ts';
import type { RunOutput, RunStore } from './run.ts';

/** Gives each attempt a folder of its own, and removes what attempts leave behind. */
export interface AttemptFolders {
  of(runId: string, claim: number): string;
  /** Takes away what nobody owns any more: all of runs that have ended, and attempts that another has replaced. */
  tidy(): Promise<void>;
  tidyRun(runId: string): Promise<void>;
  /** The output that this process has just measured, to be recognized when it is uploaded. */
  identify(output: RunOutput): Promise<FileIdentity>;
  /** Reads the output of an earlier attempt. Null if it is not there byte for byte. Rejects with the signal's reason. */
  verify(output: RunOutput, signal: AbortSignal): Promise<FileIdentity | null>;
}

/** The part of a disk that tidying uses. */
export interface TidiedDisk {
  /** Names in a folder; empty if the folder does not exist. */
  names(folder: string): Promise<readonly string[]>;
  remove(folder: string): Promise<unknown>;
}

const ofTheMachine: TidiedDisk = { names: namesIn, remove: removeFolder };
const verifyBytes = 1024 * 1024;

/**
 * Gives each attempt the folder `<run>/<claim>`, so that it never meets what a killed one left or still writes. Other
 * processes may work in the same folder.
 */
export class WorkFolders implements AttemptFolders {
  #root: string;
  #store: Pick<RunStore, 'find'>;
  #disk: TidiedDisk;

  constructor(root: string, store: Pick<RunStore, 'find'>, disk = ofTheMachine) {
    this.#root = root;
    this.#store = store;
    this.#disk = disk;
  }

  of(runId: string, claim: number): string {
    return join(this.#root, runId, String(claim));
  }

  async tidy(): Promise<void> {
    for (const runId of await this.#disk.names(this.#root)) await this.tidyRun(runId);
  }

  async tidyRun(runId: string): Promise<void> {
    const folder = join(this.#root, runId);
    // Lists names before it looks up the run, so that the list holds nothing that a later claim makes meanwhile.
    const names = await this.#disk.names(folder);
    const run = await this.#store.find(runId);
    if (!run || isFinal(run.state)) return void (await this.#disk.remove(folder));
    const isOwned = (name: string) =>
      name === String(run.claim) || run.outputs.some(({ path }) => path.startsWith(join(folder, name) + sep));
    for (const name of names) if (!isOwned(name)) await this.#disk.remove(join(folder, name));
  }

  async identify({ path }: RunOutput): Promise<FileIdentity> {
    return identityOf(await stat(path));
  }

  /** Read once more, into one buffer. */
  async verify(output: RunOutput, signal: AbortSignal): Promise<FileIdentity | null> {
    const file = await open(output.path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    });
    if (!file) return null;
    try {
      const identity = identityOf(await file.stat());
      const hash = createHash('sha256');
      const buffer = Buffer.allocUnsafe(verifyBytes);
      let sizeBytes = 0;
      for (;;) {
        signal.throwIfAborted();
        const { bytesRead } = await file.read(buffer, 0, buffer.length, sizeBytes);
        if (bytesRead === 0)
          return sizeBytes === output.sizeBytes && hash.digest('hex') === output.sha256 ? identity : null;
        hash.update(buffer.subarray(0, bytesRead));
        sizeBytes += bytesRead;
      }
    } finally {
      await file.close();
    }
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return [];
    throw error;
  });
}
