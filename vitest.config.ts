import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // As the servers are started: what is compiled is kept, for their children too.
    execArgv: ['--import', new URL('./scripts/preload.mjs', import.meta.url).href],
    maxWorkers: 2,
    // Real servers, real polling, real child processes on shared machines: wide, and no test measures time by it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
});
