import { onTestFinished, TestRunner } from 'vitest';

const pending: (() => unknown)[] = [];

/**
 * Undoes something when the test is over that asked for it, or else when its file is: what is asked for outside of a test, or in
 * one that runs beside others, which Vitest cannot tell apart once they have awaited something. The newest first.
 */
export function cleanUpLater(undo: () => unknown): void {
  const test = TestRunner.getCurrentTest();
  if (test === undefined || test.concurrent) cleanUpAfterFile(undo);
  else onTestFinished(async () => void (await undo()));
}

/** Undoes something when the file's tests are over: what its tests share. */
export function cleanUpAfterFile(undo: () => unknown): void {
  pending.push(undo);
}

/** Undoes all that is left, the newest first. */
export async function cleanUp(): Promise<void> {
  for (let undo = pending.pop(); undo; undo = pending.pop()) await undo();
}
