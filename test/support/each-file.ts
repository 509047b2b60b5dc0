/** Runs before each file of tests; files share a process and the modules that it has loaded (`isolate: false`). */
import { afterAll, beforeAll, expect } from 'vitest';
import { cleanUp } from './cleanup.ts';
import { inUse, leftOver, type InUse } from './left-over.ts';

let before: InUse;
beforeAll(() => {
  before = inUse();
});
afterAll(async () => {
  await cleanUp();
  expect(await leftOver(before), 'this test file leaves these resources open').toEqual([]);
});
