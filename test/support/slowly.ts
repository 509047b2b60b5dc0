/** Fakes that answer as late as the real thing: not at once, so that something may happen between two awaits. */
import { setImmediate } from 'node:timers/promises';

/** Most turns of the event loop before an answer, and as many after the work is done. */
const mostTurns = 4;

/** Chooses all turns of this process. The nightly job sets another `FAKE_SEED` each time. */
let state = Number(process.env['FAKE_SEED'] ?? 1);

function turns(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * (mostTurns + 1));
}

/** Waits for some turns of the event loop. */
export async function someTurns(): Promise<void> {
  for (let left = turns(); left > 0; left--) await setImmediate();
}

/** The same object, whose methods begin and answer some turns of the event loop later. What is not a method, or answers no promise, stays as it is. */
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
