import { afterAll } from 'vitest';

const pending: (() => unknown)[] = [];

/**
 * Undoes something when the file's tests are over, the newest first. (Vitest's own `onTestFinished`
 * cannot tell concurrent tests apart once they have awaited something.)
 */
export function cleanUpLater(undo: () => unknown): void {
  pending.push(undo);
}

afterAll(async () => {
  for (let undo = pending.pop(); undo; undo = pending.pop()) await undo();
});
