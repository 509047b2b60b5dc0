/** Folders of attempts: which of them the janitor removes. */
import { expect, test } from 'vitest';
import type { Run } from '../../src/app/runs/run.ts';
import { WorkFolders } from '../../src/app/runs/work-folders.ts';

const runAt = (claim: number) => ({ id: 'r', claim, state: 'PROCESSING', outputs: [] }) as unknown as Run;

test('a folder that is claimed while the janitor looks stays', async () => {
  let [claim, folders] = [1, ['0', '1']];
  const removed: string[] = [];
  const work = new WorkFolders(
    '/work',
    { find: async () => runAt(claim) },
    {
      async names(folder) {
        if (folder === '/work') return ['r'];
        const names = folders;
        // Another process takes the run before the janitor asks whose it is.
        [claim, folders] = [2, [...folders, '2']];
        return names;
      },
      remove: async (folder) => void removed.push(folder),
    },
  );
  await work.tidy();
  // The list is older than the claim, so it cannot hold the folder of the claim.
  expect(removed).toEqual(['/work/r/0', '/work/r/1']);
});

test('a folder that appears after the run was looked up stays', async () => {
  const removed: string[] = [];
  const asked: string[] = [];
  const work = new WorkFolders(
    '/work',
    {
      async find() {
        asked.push('run');
        return runAt(2);
      },
    },
    {
      async names() {
        asked.push('names');
        // The folder of claim 3 is there only if the run was looked up before.
        return asked.includes('run') ? ['2', '3'] : ['2'];
      },
      remove: async (folder) => void removed.push(folder),
    },
  );
  await work.tidyRun('r');
  expect([asked, removed]).toEqual([['names', 'run'], []]);
});
