/** Runs before each file of tests; files share a process and the modules that it has loaded (`isolate: false`). */
import { relative } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { cleanUp } from './cleanup.ts';
import { projectRoot } from './folders.ts';
import { inUse, leftOver } from './left-over.ts';
import { restartTurns } from './slowly.ts';

/** Vitest runs this module before the module of each file, so resources that a file opens at its top level count, too. */
const before = inUse();
beforeAll(() => restartTurns(relative(projectRoot, expect.getState().testPath ?? '')));
afterAll(async () => {
  await cleanUp();
  expect(await leftOver(before), 'this test file leaves these resources open').toEqual([]);
});
