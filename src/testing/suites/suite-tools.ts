import type { expect } from 'vitest';

/** What a suite writes its tests with: vitest's, which a test file hands in. */
export interface SuiteTools {
  readonly test: (name: string, run: () => Promise<void>) => void;
  readonly expect: typeof expect;
}
