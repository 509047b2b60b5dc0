/** Each operation is on exactly one page. */
import { expect, test } from 'vitest';
import { openSandboxDatabase } from '../../src/sandbox/database.ts';
import { Operations } from '../../src/sandbox/external-app/operations.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';

test('pages of waiting and of decided operations', async () => {
  const database = openSandboxDatabase(await testFolder());
  cleanUpLater(() => database.close());
  database.pragma('foreign_keys = off');
  let now = 0;
  const operations = new Operations(database, { now: () => now } as never, { note: () => {} } as never, {
    operationWindowMs: 100,
  });
  const ids = ['a', 'b', 'c', 'd', 'e'].map((name) => {
    now += 1;
    return operations.create('launch', { name }, null).id;
  });
  for (const i of [0, 2, 4]) operations.decide(ids[i]!, 'APPROVED');
  const pages = (isWaiting: boolean) =>
    [0, 1, 2].map((skip) => operations.page(1, { isWaiting, skip }).map(({ name }) => name));
  expect(pages(false)).toEqual([['e'], ['c'], ['a']]);
  expect(pages(true)).toEqual([['b'], ['d'], []]);
});
