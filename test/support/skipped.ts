import { test } from 'vitest';

/** Tests that cannot run here: says which and why, in the report and on the console. */
export function skipAloud(what: string, why: string): void {
  test.skip(`${what}: ${why}`);
  console.warn(`skipped: ${what}: ${why}`);
}
