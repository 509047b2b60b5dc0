import type { expect } from 'vitest';

/** Vitest's functions, which a test file hands to a suite. */
export interface SuiteTools {
  readonly test: (name: string, run: () => Promise<void>) => void;
  readonly expect: typeof expect;
}
