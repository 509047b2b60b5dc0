/** Fakes that answer with a delay, as real services do, so that tests meet races between two awaits. */
import { setImmediate } from 'node:timers/promises';

/** Maximum number of turns of the event loop before the work of a call, and again after it. */
const mostTurns = 4;

/** State of the random numbers of this process. The nightly job sets another `FAKE_SEED` each time. */
let state = Number(process.env['FAKE_SEED'] ?? 1);

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
