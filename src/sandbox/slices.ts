import { SandboxError } from './web/sandbox-error.ts';

export interface SlicesOptions {
  /** How long one piece of work may keep the event loop before others have it. Default 20 ms. */
  readonly sliceMs?: number;
  /** From its begin to its end, waiting included. Default 10 s. */
  readonly deadlineMs?: number;
  /** Pieces of work at a time; one more is refused with 503 `busy`. Default 200. */
  readonly mostAtOnce?: number;
}

/** Long work of many requests on the one event loop: a slice of one of them at a time, and between two slices everybody else. */
export class Slices {
  #options: Required<SlicesOptions>;
  #turns: Promise<void> = Promise.resolve();
  #open = 0;

  constructor(options: SlicesOptions = {}) {
    this.#options = { sliceMs: 20, deadlineMs: 10_000, mostAtOnce: 200, ...options };
  }

  /** Does `work`, which asks for its next slice now and then. Throws 503 where it is not done in time, or too much is under way. */
  async run<T>(what: string, work: (slice: Slice) => Promise<T>): Promise<T> {
    const { sliceMs, deadlineMs, mostAtOnce } = this.#options;
    if (this.#open >= mostAtOnce)
      throw new SandboxError(503, 'busy', `the sandbox is busy with too many of these; try ${what} again in a moment`);
    this.#open += 1;
    try {
      const slice = new Slice(() => this.#turn(), sliceMs, deadlineMs, what);
      await slice.next();
      return await work(slice);
    } finally {
      this.#open -= 1;
    }
  }

  /** One of those who wait in each round of the event loop, in the order in which they came. */
  #turn(): Promise<void> {
    this.#turns = this.#turns.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.#turns;
  }
}

/** One piece of work and its share of the event loop. */
export class Slice {
  #turn: () => Promise<void>;
  #sliceMs: number;
  #deadlineMs: number;
  #what: string;
  #begunMs = performance.now();
  #sinceMs = performance.now();

  constructor(turn: () => Promise<void>, sliceMs: number, deadlineMs: number, what: string) {
    this.#turn = turn;
    this.#sliceMs = sliceMs;
    this.#deadlineMs = deadlineMs;
    this.#what = what;
  }

  /** True where it is others' turn: call `next` then. */
  get isOver(): boolean {
    return performance.now() - this.#sinceMs > this.#sliceMs;
  }

  /** Resolves when the next slice begins. Throws 503 `search_timeout` where the time is up. */
  async next(): Promise<void> {
    await this.#turn();
    this.#sinceMs = performance.now();
    if (this.#sinceMs - this.#begunMs > this.#deadlineMs) throw this.#timeout();
  }

  /** What another thread or process makes; the next slice begins then. Throws 503 `search_timeout` where the time is up before. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      const leftMs = Math.max(0, this.#begunMs + this.#deadlineMs - performance.now());
      timer = setTimeout(() => reject(this.#timeout()), leftMs);
    });
    try {
      const result = await Promise.race([promise, late]);
      await this.next();
      return result;
    } finally {
      clearTimeout(timer);
    }
  }

  #timeout(): SandboxError {
    return new SandboxError(
      503,
      'search_timeout',
      `${this.#what} took longer than ${this.#deadlineMs / 1000} s, so the sandbox gave it up; ask for less: a smaller bbox, fewer collections or a shorter datetime`,
    );
  }
}
