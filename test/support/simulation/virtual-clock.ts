import { AsyncLocalStorage } from 'node:async_hooks';

/** A process of the simulation: what it has begun goes on in its own time, or, where it was killed, never. */
export interface SimProcess {
  readonly name: string;
  isDead: boolean;
  /** Stopped (SIGSTOP) until then. */
  pausedUntilMs: number;
}

interface Event {
  atMs: number;
  readonly order: number;
  readonly process: SimProcess | undefined;
  readonly run: () => void;
  isOff: boolean;
}

const realSetImmediate = setImmediate;
const flushed = () => new Promise<void>((resolve) => realSetImmediate(resolve));
/** In which process the code runs that is running. */
const here = new AsyncLocalStorage<SimProcess | undefined>();

/**
 * Time of a world of its own: timers fire in order, and what they led to has settled before the next does. So a
 * minute passes in milliseconds, and the same way each time.
 */
export class VirtualClock {
  nowMs = 1_700_000_000_000;
  /** Milliseconds by which the wall clocks of all machines are ahead of real time. Timers and monotonic clocks ignore it. */
  aheadMs = 0;
  readonly #fromMs = this.nowMs;
  #events: Event[] = [];
  #orders = 0;

  get elapsedMs(): number {
    return this.nowMs - this.#fromMs;
  }

  process(): SimProcess | undefined {
    return here.getStore();
  }

  /** Runs `work` as the process does. */
  as<T>(process: SimProcess, work: () => T): T {
    return here.run(process, work);
  }

  /** Calls `run` after `delayMs`, as `process`, or as the world where there is none. */
  schedule(delayMs: number, process: SimProcess | undefined, run: () => void): Event {
    const event = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#orders++, process, run, isOff: false };
    this.#insert(event);
    return event;
  }

  /** Lets time pass until `isDone`, at most for `limitMs`. */
  async pass(limitMs: number, isDone: () => boolean = () => false): Promise<void> {
    const endMs = this.nowMs + limitMs;
    await flushed();
    while (!isDone()) {
      const event = this.#events[0];
      if (!event || event.atMs > endMs) {
        this.nowMs = endMs;
        return;
      }
      this.#events.shift();
      this.nowMs = event.atMs;
      const { process } = event;
      if (event.isOff || process?.isDead) continue;
      if (process && process.pausedUntilMs > this.nowMs) {
        event.atMs = process.pausedUntilMs;
        this.#insert(event);
        continue;
      }
      here.run(process, event.run);
      await flushed();
    }
  }

  #insert(event: Event): void {
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#events[middle]!;
      if (other.atMs < event.atMs || (other.atMs === event.atMs && other.order < event.order)) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }

  /** Puts this clock, and this chance, into the place of the machine's until the function that it answers is called. */
  install(random: () => number): () => void {
    const real = {
      setTimeout: globalThis.setTimeout,
      clearTimeout: globalThis.clearTimeout,
      setInterval: globalThis.setInterval,
      clearInterval: globalThis.clearInterval,
      now: Date.now,
      performanceNow: performance.now.bind(performance),
      random: Math.random,
    };
    const timer = (delayMs: number, work: () => void, isRepeated: boolean) => {
      const handle = {
        event: this.schedule(delayMs, here.getStore(), () => fire()),
        unref: () => handle,
        ref: () => handle,
        hasRef: () => false,
      };
      const fire = () => {
        if (isRepeated) handle.event = this.schedule(delayMs, here.getStore(), fire);
        work();
      };
      return handle;
    };
    const clear = (handle?: unknown) => {
      const { event } = (handle ?? {}) as { event?: Event };
      if (event) event.isOff = true;
    };
    const fakes = {
      setTimeout: (work: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
        timer(delayMs, () => work(...args), false),
      setInterval: (work: () => void, delayMs = 0) => timer(delayMs, work, true),
      clearTimeout: clear,
      clearInterval: clear,
    };
    Object.assign(globalThis, fakes);
    Date.now = () => this.nowMs + this.aheadMs;
    performance.now = () => this.elapsedMs;
    Math.random = random;
    return () => {
      const { now, performanceNow, random, ...timers } = real;
      Object.assign(globalThis, timers);
      Date.now = now;
      performance.now = performanceNow;
      Math.random = random;
    };
  }
}

/** In the place of `node:timers/promises`: as that, by whichever clock is there when it is called. */
export const timersPromises = {
  setTimeout<T>(delayMs: number, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const aborted = () => reject(new DOMException('The operation was aborted', 'AbortError'));
      if (signal?.aborted) return aborted();
      const timer = globalThis.setTimeout(() => resolve(value), delayMs);
      signal?.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          aborted();
        },
        { once: true },
      );
    });
  },
};
