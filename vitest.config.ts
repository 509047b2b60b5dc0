import { defineConfig } from 'vitest/config';
import LongFirst from './test/support/long-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // As the servers are started: what is compiled is kept, for their children too.
    execArgv: ['--import', new URL('./scripts/preload.mjs', import.meta.url).href],
    // Half of the time is spent waiting: for the platform's polling, for browsers, for processes that start again.
    maxWorkers: 3,
    maxConcurrency: 3,
    sequence: { sequencer: LongFirst },
    // Real servers, real polling, real child processes on shared machines: wide, and no test measures time by it.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
});
