/** Fakes that answer with a delay, as real services do, so that tests meet races between two awaits. */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';

/** Maximum number of turns of the event loop before the work of a call, and again after it. */
const mostTurns = 4;

/** The nightly job sets another number each time. */
const seed = process.env['FAKE_SEED'] ?? '1';
/** State of the random numbers. */
let state = 0;

/** Begins the delays again. They are the same for each run of a test file, also if other files ran before it in this process. */
export function restartTurns(file: string): void {
  state = createHash('sha256').update(`${seed} ${file}`).digest().readUInt32LE();
}

function turns(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * (mostTurns + 1));
}

/** Waits for a random number of turns of the event loop. */
export async function someTurns(): Promise<void> {
  for (let left = turns(); left > 0; left--) await setImmediate();
}

/** Returns the object with delayed async methods. Its other members stay the same. */
export function slowly<T extends object>(fake: T): T {
  return new Proxy(fake, {
    get(target, name, receiver): unknown {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function' || value.constructor.name !== 'AsyncFunction') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        await someTurns();
        try {
          return await (Reflect.apply(value, target, args) as Promise<unknown>);
        } finally {
          await someTurns();
        }
      };
    },
  });
}
