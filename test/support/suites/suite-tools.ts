/** The matchers of Vitest that the suites use; Jest has them too. Those of `rejects` and `expect.poll` return promises. */
interface Matchers<Result> {
  toBe(expected: unknown): Result;
  toEqual(expected: unknown): Result;
  toMatchObject(expected: object): Result;
  toBeNull(): Result;
  toHaveLength(length: number): Result;
  toContain(item: unknown): Result;
  toMatch(pattern: string | RegExp): Result;
  toBeGreaterThanOrEqual(least: number): Result;
  toThrow(expected?: unknown): Result;
}

/** Vitest's functions, which a test file hands to a suite. */
export interface SuiteTools {
  readonly test: (name: string, run: () => Promise<void>) => void;
  readonly expect: {
    (
      actual: unknown,
      message?: string,
    ): Matchers<void> & {
      readonly not: Matchers<void>;
      readonly rejects: Matchers<Promise<void>>;
      readonly resolves: Matchers<Promise<void>>;
    };
    poll(
      actual: () => unknown,
      options?: { readonly timeout?: number },
    ): Matchers<Promise<void>> & { readonly not: Matchers<Promise<void>> };
  };
}
