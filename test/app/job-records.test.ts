/** Records of the jobs that engines have. */
import { expect, test } from 'vitest';
import { JobRecords } from '../../src/app/execution/job-records.ts';
import { databaseWithLaunch } from '../support/engine-fakes.ts';
import { testFolder } from '../support/folders.ts';

const record = { runId: 'r', part: 0, tokenHash: 't', sessionHash: null, sealedHash: 's', ownerUrl: 'http://one' };

test('a new attempt gets its own job session, and the earlier job is removed', async () => {
  const records = new JobRecords(await databaseWithLaunch(await testFolder()));
  await records.put({ ...record, name: 'first' });
  expect([await records.begin('first', 'session'), await records.begin('first', 'session')]).toEqual([true, true]);
  expect(await records.begin('first', 'another session')).toBe(false);
  await records.put({ ...record, name: 'second', tokenHash: 'u', ownerUrl: 'http://two' });
  expect(await records.named('first')).toBeNull();
  expect(await records.ofRun('r')).toMatchObject({ name: 'second', sessionHash: null, ownerUrl: 'http://two' });
  expect(await records.begin('second', 'another session')).toBe(true);
});

test('each tile has its own job', async () => {
  const records = new JobRecords(await databaseWithLaunch(await testFolder()));
  for (const part of [1, 2]) await records.put({ ...record, part, name: `tile ${part}` });
  expect(await records.begin('tile 1', 'session')).toBe(true);
  await records.remove('tile 1');
  expect([await records.ofRun('r', 1), (await records.ofRun('r', 2))?.name]).toEqual([null, 'tile 2']);
});
