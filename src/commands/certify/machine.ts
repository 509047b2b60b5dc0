import { Worker } from 'node:worker_threads';
import { messageOf } from '../../files/index.ts';

/** A burst of work on this machine: the mean and the least time of its units. */
export interface Burst {
  readonly meanMs: number;
  readonly leastMs: number;
}

/** Time between two measurements. One takes about 60 ms of a processor. */
const everyMs = 4_000;
/** An app gets less than two thirds of the time that it would have: what does not come is no evidence. */
const busySlowdown = 1.5;

/**
 * Measures how busy this machine is. On a busy machine a right app misses a deadline too, so the patience of the certifier
 * counts the time that a program gets, and what does not come is no evidence.
 */
export class MachineLoad {
  #leastMs = Infinity;
  #slowdown = 1;
  /** Reason why the load cannot be measured. Then the machine counts as idle. Null while it can. */
  problem: string | null = null;

  /** Receives a measurement. */
  note({ meanMs, leastMs }: Burst): void {
    this.#leastMs = Math.min(this.#leastMs, leastMs);
    this.#slowdown = Math.max(1, meanMs / this.#leastMs);
  }

  get isMeasured(): boolean {
    return this.#leastMs < Infinity;
  }

  /** Time that a program takes now, as a multiple of its time on an idle machine. At least 1. */
  get slowdown(): number {
    return this.#slowdown;
  }

  /** Watches this machine until `stop`. `ready` settles after the first measurement. */
  static watch(): { readonly load: MachineLoad; readonly ready: Promise<void>; readonly stop: () => Promise<void> } {
    const load = new MachineLoad();
    const worker = new Worker(new URL('./machine-worker.ts', import.meta.url), { execArgv: [] });
    worker.unref();
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    const measure = () => worker.postMessage(null);
    let next: NodeJS.Timeout | undefined;
    worker.on('message', (measured: Burst) => {
      load.note(measured);
      resolve();
      next = setTimeout(measure, everyMs).unref();
    });
    worker.once('error', (error: unknown) => (load.problem = messageOf(error)));
    worker.once('exit', () => resolve());
    measure();
    return {
      load,
      ready,
      async stop() {
        clearTimeout(next);
        await worker.terminate();
      },
    };
  }
}

export const isBusy = ({ slowdown }: Pick<MachineLoad, 'slowdown'>): boolean => slowdown >= busySlowdown;

/** The load in words. */
export const loadText = ({ slowdown }: Pick<MachineLoad, 'slowdown'>): string =>
  `a program takes ${slowdown.toFixed(1)} times as long as on an idle one`;
