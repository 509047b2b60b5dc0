/** `forget-user` removes what the app keeps about one user, beside an app that runs. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';
import { startSandbox } from '../support/sandbox.ts';

async function forget(args: readonly string[], dataDir: string): Promise<{ code: unknown; text: string }> {
  const { output, exited } = startCommand('forget-user', args, { DATA_DIR: dataDir });
  return { code: await exited, text: output() };
}

test('counts first, then removes: runs that wait, launches, sessions; another user keeps all', async () => {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { dataDir: await testFolder() });
  const [amina, other] = [
    await launchApp(sandbox, app, { userId: 'amina' }),
    await launchApp(sandbox, app, { userId: 'bruno' }),
  ];
  // Rows that were written again and again leave copies of themselves.
  const done = await amina.session.start(smallRun);
  const { operationId } = await amina.session.waitFor(done.id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await amina.session.waitFor(done.id, 'COMPLETED');
  const { id } = await amina.session.start(smallRun);
  await amina.session.waitFor(id, 'AWAITING_APPROVAL');
  const kept = await other.session.start(smallRun);

  expect(await forget(['amina'], app.dataDir)).toEqual({
    code: 0,
    text: 'the app keeps 1 launch, 1 session and 2 runs (1 not ended) of user "amina"\nto remove them: add --yes\n',
  });
  expect((await amina.session.run(id)).state).toBe('AWAITING_APPROVAL');

  expect(await forget(['amina', '--yes'], app.dataDir)).toEqual({
    code: 0,
    text: 'removed 1 launch, 1 session and 2 runs of user "amina"\n',
  });
  expect((await amina.session.get('')).status).toBe(404);
  expect((await other.session.get('')).status).toBe(200);
  expect((await other.session.waitFor(kept.id, 'AWAITING_APPROVAL')).state).toBe('AWAITING_APPROVAL');
  // Neither in the database nor in its log of writes.
  for (const name of await readdir(app.dataDir))
    if (name.startsWith('app.db')) {
      const bytes = await readFile(join(app.dataDir, name), 'latin1');
      for (const word of [id, done.id, 'amina']) expect(bytes.includes(word), `${name}: ${word}`).toBe(false);
    }
  expect((await forget(['amina'], app.dataDir)).text).toBe(
    'the app keeps 0 launches, 0 sessions and 0 runs of user "amina"\n',
  );
});

test.each([
  [[], /name one user/],
  [['a', 'b'], /name one user/],
  [['a'], /holds no database of an app/],
])('%j is refused', async (args, message) => {
  const { code, text } = await forget(args, await testFolder());
  expect(code).toBe(1);
  expect(text).toMatch(message);
  expect(text).not.toMatch(/\n {4}at /);
});
