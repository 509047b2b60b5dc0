import { randomUUID } from 'node:crypto';
import { opendir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { KitError } from '../contract/kit-error.ts';
import { removeFolder } from '../files/index.ts';
import { codeBeside } from './bubblewrap.ts';
import { makeReadableFolder, makeWorkFolder } from './child-user.ts';
import type { Confinement } from './confinement.ts';
import { FairQueue } from './fair-queue.ts';
import type { ChildJob } from './child-job.ts';
import { folderOf, runInChild } from './host.ts';
import { CannotLinkError, makeLinks, planLending } from './lend-file.ts';
import type { ChildLimits } from './limits.ts';
import { ReportedJobError } from './reported-error.ts';
import { ChildRunner } from './runner.ts';

export interface ChildPoolOptions {
  readonly confinement: Confinement;
  /** Holds the children's folders. Must be on the same file system as the files that children are lent, because the pool lends by link. */
  readonly folder: string;
  /** Limits for each child. `timeoutMs` applies to each job. */
  readonly limits?: ChildLimits | undefined;
  /** Most processes. Default 2. */
  readonly size?: number;
  /** A process that has nothing to do for this long is ended. Default 30 s. */
  readonly idleMs?: number;
}

export interface PoolJob<Output> extends ChildJob {
  /** User who owns the files. Owners take turns, and a child serves only one owner. Each job of an owner must load the same modules, or modules of the kit. */
  readonly owner: string;
  /** Takes what the job has written out of its work folder, before that is emptied. */
  readonly collect?: (workFolder: string, output: Output) => Promise<void>;
}

/** Too many jobs wait already. */
export class PoolBusyError extends KitError {
  constructor() {
    super('pool_busy', 'too many jobs are waiting', { status: 503 });
  }
}

/** Largest numbers of waiting jobs: of all owners, and of one. Further jobs are refused with `PoolBusyError`. */
const maxWaiting = { all: 200, ofOwner: 50 };
/** A process is replaced after this number of jobs, because jobs may leak. */
const jobsPerChild = 500;

interface Kept {
  readonly runner: ChildRunner;
  readonly owner: string;
  /** `in` is lent, read-only; `work` is the child's own. */
  readonly folder: string;
  /** True if the child runs as another user than the server. */
  readonly isOtherUser: boolean;
  jobs: number;
  idle: NodeJS.Timeout | undefined;
}

/** Keeps child processes for their owner's next job. Suits many small jobs, for which starting a process would take most of the time. */
export class ChildPool {
  #options: Required<Omit<ChildPoolOptions, 'limits'>> & Pick<ChildPoolOptions, 'limits'>;
  #turns: FairQueue;
  #idle: Kept[] = [];
  #ending = new Set<Promise<void>>();
  #running = new Set<Promise<unknown>>();
  #abort = new AbortController();

  constructor(options: ChildPoolOptions) {
    this.#options = { size: 2, idleMs: 30_000, ...options };
    this.#turns = new FairQueue(this.#options.size);
  }

  /** Runs a job like `runInChild`, in the pool's next free process. */
  async run<Output>(job: PoolJob<Output>): Promise<Output> {
    if (this.#turns.waiting >= maxWaiting.all || this.#turns.waitingOf(job.owner) >= maxWaiting.ofOwner)
      throw new PoolBusyError();
    const signal = job.signal ? AbortSignal.any([job.signal, this.#abort.signal]) : this.#abort.signal;
    const running = this.#turns.run(job.owner, () => this.#runOne<Output>({ ...job, signal }), signal);
    this.#running.add(running);
    return running.finally(() => this.#running.delete(running));
  }

  /** Ends what runs and what waits; resolves when no process is left. */
  async close(): Promise<void> {
    this.#abort.abort(new Error('the pool is closing'));
    this.#idle.splice(0).forEach((child) => this.#end(child));
    await Promise.allSettled(this.#running);
    await Promise.all(this.#ending);
  }

  async #runOne<Output>(job: PoolJob<Output>): Promise<Output> {
    const child = await this.#childFor(job);
    const { paths, lends } = planLending(job.files ?? [], join(child.folder, 'in'));
    let mayKeep = true;
    try {
      const { kind, ownFolders } = this.#options.confinement;
      await makeLinks(lends, { mayBeSymbolic: kind === 'none', readableIn: child.isOtherUser ? ownFolders : null });
      child.jobs += 1;
      const output = await child.runner.run<Output>({ ...job, paths });
      await child.runner.requireDiskLimit();
      await job.collect?.(join(child.folder, 'work'), output);
      return output;
    } catch (error) {
      if (error instanceof CannotLinkError) return await this.#runAlone(job);
      // After an unexpected error, the process is about to end, or its state is unknown.
      mayKeep = !(error instanceof ReportedJobError && error.claimedKind === 'bug');
      throw error;
    } finally {
      if (mayKeep) await this.#keep(child);
      else this.#end(child);
    }
  }

  /** Runs the job in a separate child, because its files cannot be lent by link. */
  async #runAlone<Output>(job: PoolJob<Output>): Promise<Output> {
    const { confinement, limits } = this.#options;
    const folder = join(this.#options.folder, randomUUID());
    const workFolder = join(folder, 'work');
    try {
      const output = await runInChild<Output>({ ...job, confinement, limits, workFolder });
      await job.collect?.(workFolder, output);
      return output;
    } finally {
      await removeFolder(folder);
    }
  }

  async #childFor({
    owner,
    module,
    imports = [],
  }: Pick<PoolJob<unknown>, 'owner' | 'module' | 'imports'>): Promise<Kept> {
    const found = this.#idle.findIndex((idle) => idle.owner === owner && idle.runner.isAlive);
    // If all kept processes belong to other owners, one of them makes room.
    const [kept] = found >= 0 ? this.#idle.splice(found, 1) : [];
    if (kept) {
      clearTimeout(kept.idle);
      return kept;
    }
    // This one is counted among those that run.
    while (this.#idle.length + this.#turns.running > this.#options.size) {
      const oldest = this.#idle.shift();
      if (!oldest) break;
      this.#end(oldest);
    }
    const folder = join(this.#options.folder, randomUUID());
    const [lent, workFolder] = [join(folder, 'in'), join(folder, 'work')];
    const { confinement, limits } = this.#options;
    const user = confinement.newUser();
    await Promise.all([makeReadableFolder(lent), makeWorkFolder(workFolder, user)]);
    confinement.warmUp([module, ...imports]);
    const runner = new ChildRunner({
      confinement,
      limits,
      place: { workFolder, reads: [folderOf(module), ...imports.flatMap(codeBeside)], inbox: lent, lends: [], user },
    });
    return { runner, owner, folder, isOtherUser: user !== null, jobs: 0, idle: undefined };
  }

  /** Empties the child's folders and, if possible, keeps the child for the next job. */
  async #keep(child: Kept): Promise<void> {
    if (!child.runner.isAlive || child.jobs >= jobsPerChild || this.#abort.signal.aborted) return this.#end(child);
    const isEmpty = (await takeBackLent(join(child.folder, 'in'))) && (await unlinkFiles(join(child.folder, 'work')));
    if (!isEmpty) return this.#end(child);
    child.idle = setTimeout(() => {
      this.#idle = this.#idle.filter((idle) => idle !== child);
      this.#end(child);
    }, this.#options.idleMs);
    child.idle.unref();
    this.#idle.push(child);
  }

  #end(child: Kept): void {
    clearTimeout(child.idle);
    const ending = child.runner.end().then(async () => void (await removeFolder(child.folder)));
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }
}

/** Empties the folder of lent files, which the child can only read. False if anything is left. */
async function takeBackLent(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  return (await Promise.all(names.map((name) => removeFolder(join(folder, name))))).every(Boolean);
}

/** An honest job of a pool leaves less. */
const maxLeftEntries = 100;

/**
 * Unlinks the files in a folder that a living child may be changing. Nothing that has a folder in it is touched: by the time
 * its path is walked, a link may stand there that leads to the server's own files. False if anything is left; the caller
 * then ends the child first.
 */
async function unlinkFiles(folder: string): Promise<boolean> {
  let count = 0;
  try {
    for await (const { name } of await opendir(folder)) {
      if (++count > maxLeftEntries) return false;
      // A link goes itself, not the file that it leads to; a folder makes it fail.
      await unlink(join(folder, name));
    }
    return true;
  } catch {
    return false;
  }
}
