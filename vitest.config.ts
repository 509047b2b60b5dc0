import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import LongFirst from './test/support/long-first.ts';
import ClosingTable from './test/support/report.ts';
import { isAll, onlyInAll } from './test/support/tags.ts';

/** Test files that `npm test` leaves out. */
const filesOnlyInAll = globSync('test/**/*.test.ts').filter((one) =>
  readFileSync(one, 'utf8').startsWith(`// @module-tag ${onlyInAll}\n`),
);

/** Test files that replace a module (`vi.mock`) or the clock. Each runs in its own process. */
const filesApart = ['test/app/simulated-{faults,mutants}.test.ts', 'test/sandbox/trace-of-groups.test.ts'];
const files = { include: ['test/**/*.test.ts'], exclude: isAll ? [] : filesOnlyInAll };

export default defineConfig({
  test: {
    projects: [
      // A process runs several files. Reloading the code for each file would take a third of the time.
      { extends: true, test: { ...files, name: 'shared', exclude: [...files.exclude, ...filesApart], isolate: false } },
      { extends: true, test: { ...files, name: 'apart', include: filesApart, isolate: true } },
    ],
    tags: [{ name: onlyInAll, description: 'Only npm run test:all runs it.' }],
    pool: 'forks',
    setupFiles: ['test/support/each-file.ts'],
    // Starts like the servers: keeps compiled code, for their children too.
    execArgv: ['--import', new URL('./scripts/preload.mjs', import.meta.url).href],
    // A part of the time is spent waiting: for the platform's polling, for browsers, for processes that start again.
    maxWorkers: 3,
    maxConcurrency: 3,
    sequence: { sequencer: LongFirst },
    // Real servers, real polling, real child processes on shared machines: wide, and no test measures time by it.
    testTimeout: 900_000,
    hookTimeout: 600_000,
    // Vitest's own limit is a second.
    expect: { poll: { timeout: 300_000 } },
    reporters: ['default', new ClosingTable()],
  },
});
