import { Worker } from 'node:worker_threads';
import { SandboxError } from '../web/sandbox-error.ts';
import type { SearchQuery } from './search-query.ts';
import type { SearchAnswer, SearchOrder } from './search-thread.ts';

export interface SearchThreadsOptions {
  /** Limit of the time from a search to its answer, without the start of the first thread. Default: 10,000. */
  readonly deadlineMs?: number;
  /** Limit of the searches that wait for a thread. Default: 200. */
  readonly maxWaiting?: number;
}

type Found = Extract<SearchAnswer, { rows: unknown } | { unfulfilled: unknown }>;
type Answered = Found | Extract<SearchAnswer, { names: unknown }>;

interface Job {
  readonly query: SearchQuery | null;
  /** True if the search reads properties or compares geometries of many items. */
  readonly isSlow: boolean;
  readonly endMs: number;
  readonly resolve: (answer: Answered) => void;
  readonly reject: (error: Error) => void;
}

/** Slow searches use only one thread, so that others do not wait for them. */
const maxThreads = 2;

/** Threads that answer searches. The first search starts the first thread. */
export class SearchThreads {
  readonly #databasePath: string;
  readonly #deadlineMs: number;
  readonly #maxWaiting: number;
  readonly #jobs = new Map<Worker, Job | null>();
  readonly #waiting: Job[] = [];
  #firstThread: PromiseWithResolvers<void> | null = null;
  #isClosed = false;

  constructor(databasePath: string, { deadlineMs = 10_000, maxWaiting = 200 }: SearchThreadsOptions = {}) {
    this.#databasePath = databasePath;
    this.#deadlineMs = deadlineMs;
    this.#maxWaiting = maxWaiting;
  }

  /** Throws 503 `search_timeout` after the deadline, and 503 `busy` if too many searches wait. */
  async run(query: SearchQuery): Promise<Found> {
    // A thread answers a query by what it finds, and null by names.
    return (await this.#run(query)) as Found;
  }

  /** Names of properties that have a value in one of the first 5,000 items. Throws like `run`. */
  async propertyNames(): Promise<readonly string[]> {
    const answer = await this.#run(null);
    return 'names' in answer ? answer.names : [];
  }

  async #run(query: SearchQuery | null): Promise<Answered> {
    const closed = new Error('the sandbox is closed');
    if (this.#isClosed) throw closed;
    if (!this.#firstThread) {
      this.#firstThread = Promise.withResolvers();
      this.#jobs.set(this.#start(), null);
    }
    await this.#firstThread.promise;
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- `close` may run during an await
    if (this.#isClosed) throw closed;
    if (this.#waiting.length >= this.#maxWaiting)
      throw new SandboxError('busy', {
        message: 'the sandbox is busy with too many searches; try the search again in a moment',
      });
    const { promise, resolve, reject } = Promise.withResolvers<Answered>();
    const isSlow = query?.isSlow ?? true;
    const job: Job = { query, isSlow, endMs: performance.now() + this.#deadlineMs, resolve, reject };
    const timer = setTimeout(() => reject(this.#late()), this.#deadlineMs);
    this.#waiting.push(job);
    this.#next();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      const place = this.#waiting.indexOf(job);
      if (place >= 0) this.#waiting.splice(place, 1);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const closed = new Error('the sandbox is closing');
    for (const job of [...this.#waiting.splice(0), ...this.#jobs.values()]) job?.reject(closed);
    const threads = [...this.#jobs.keys()];
    this.#jobs.clear();
    this.#firstThread?.resolve();
    await Promise.all(threads.map((thread) => thread.terminate()));
  }

  #next(): void {
    const isSlowOne = [...this.#jobs.values()].some((job) => job?.isSlow);
    const job = this.#waiting.find(({ isSlow }) => !isSlow || !isSlowOne);
    if (!job) return;
    const idle = [...this.#jobs].find(([, own]) => own === null)?.[0];
    const thread = idle ?? (this.#jobs.size < maxThreads ? this.#start() : null);
    if (!thread) return;
    this.#waiting.splice(this.#waiting.indexOf(job), 1);
    this.#jobs.set(thread, job);
    thread.ref();
    thread.postMessage({ query: job.query, leftMs: job.endMs - performance.now() } satisfies SearchOrder);
  }

  #start(): Worker {
    const thread = new Worker(new URL('./search-thread.ts', import.meta.url), { workerData: this.#databasePath });
    thread.on('message', (answer: SearchAnswer) => {
      // An idle thread keeps no process alive.
      thread.unref();
      if ('isReady' in answer) return this.#firstThread?.resolve();
      const job = this.#jobs.get(thread);
      if (job === undefined) return;
      this.#jobs.set(thread, null);
      if ('isLate' in answer) job?.reject(this.#late());
      else if ('error' in answer) job?.reject(new Error(`the search failed: ${answer.error}`));
      else job?.resolve(answer);
      this.#next();
    });
    thread.on('error', (error: Error) => {
      this.#jobs.get(thread)?.reject(error);
      this.#jobs.delete(thread);
      if (this.#jobs.size === 0) {
        this.#firstThread?.reject(error);
        // The next search starts another thread.
        this.#firstThread = null;
      }
      this.#next();
    });
    return thread;
  }

  #late(): SandboxError {
    return new SandboxError('search_timeout', {
      message: `the search took longer than ${this.#deadlineMs / 1000} s, so the sandbox gave it up; ask for less: a smaller bbox, fewer collections or a shorter datetime`,
    });
  }
}
