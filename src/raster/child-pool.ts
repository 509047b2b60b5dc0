import { mkdir } from 'node:fs/promises';
import pLimit from 'p-limit';
import { KitError } from '../contract/kit-error.ts';
import { ChildRunner, type ChildJobOptions } from './child-host.ts';

export interface ChildPoolOptions {
  /** Working folder of the children. */
  readonly folder: string;
  /** Most processes. Default 2. */
  readonly size?: number;
  /** Most jobs that wait; one more is refused with `PoolBusyError`. Default 200. */
  readonly queueSize?: number;
  /** A process that has nothing to do for this long is ended. Default 30 s. */
  readonly idleMs?: number;
}

/** Too many jobs wait already. */
export class PoolBusyError extends KitError {
  constructor() {
    super('pool_busy', 'too many jobs are waiting', { status: 503 });
  }
}

/** A process is replaced after so many jobs, whatever it may have leaked. */
const jobsPerChild = 500;

/** Child processes that are kept for the next job: for many small ones, of which a process start would be most of the time. */
export class ChildPool {
  #options: Required<ChildPoolOptions>;
  #limit: ReturnType<typeof pLimit>;
  #idle: { child: ChildRunner; jobs: number; timer: NodeJS.Timeout }[] = [];
  #ending = new Set<Promise<void>>();
  #running = new Set<Promise<unknown>>();
  #abort = new AbortController();

  constructor(options: ChildPoolOptions) {
    this.#options = { size: 2, queueSize: 200, idleMs: 30_000, ...options };
    this.#limit = pLimit(this.#options.size);
  }

  /** As `runInChild`. */
  async run<Output>(job: ChildJobOptions): Promise<Output> {
    if (this.#limit.pendingCount >= this.#options.queueSize) throw new PoolBusyError();
    const running = this.#limit(() => this.#runOne<Output>(job));
    this.#running.add(running);
    return running.finally(() => this.#running.delete(running));
  }

  async #runOne<Output>(job: ChildJobOptions): Promise<Output> {
    this.#abort.signal.throwIfAborted();
    await mkdir(this.#options.folder, { recursive: true });
    const kept = this.#idle.pop();
    clearTimeout(kept?.timer);
    const child = kept?.child.isAlive ? kept.child : new ChildRunner(this.#options.folder);
    const jobs = (kept?.child === child ? kept.jobs : 0) + 1;
    try {
      const signal = job.signal ? AbortSignal.any([job.signal, this.#abort.signal]) : this.#abort.signal;
      return await child.run<Output>({ ...job, signal });
    } finally {
      this.#keep(child, jobs);
    }
  }

  /** Ends what runs and what waits; resolves when no process is left. */
  async close(): Promise<void> {
    this.#abort.abort(new Error('the pool is closing'));
    for (const { child, timer } of this.#idle.splice(0)) {
      clearTimeout(timer);
      this.#end(child);
    }
    await Promise.allSettled(this.#running);
    await Promise.all(this.#ending);
  }

  #keep(child: ChildRunner, jobs: number): void {
    if (!child.isAlive || jobs >= jobsPerChild || this.#abort.signal.aborted) return this.#end(child);
    const timer = setTimeout(() => {
      this.#idle = this.#idle.filter((one) => one.child !== child);
      this.#end(child);
    }, this.#options.idleMs);
    timer.unref();
    this.#idle.push({ child, jobs, timer });
  }

  #end(child: ChildRunner): void {
    const ending = child.end();
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }
}
