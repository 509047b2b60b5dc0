/** `npm run dev`: both servers, restarted when their files change, and nothing left when it ends. */
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';

test('prints both addresses, restarts the one whose files changed, and stops both', async () => {
  const run = startCommand('dev', ['--port', '0', '--app-port', '0', '--data', await testFolder()], { LOG_LEVEL: 'error' });
  await expect.poll(run.output, { timeout: 60_000 }).toMatch(/Both restart/);
  const [, sandboxUrl] = /^sandbox {2}(\S+)$/m.exec(run.output()) ?? [];
  const [, appUrl] = /^app {6}(\S+)$/m.exec(run.output()) ?? [];
  const { apps } = (await (await fetch(`${sandboxUrl}/sandbox/apps`)).json()) as { apps: { id: string; launchUrl: string }[] };
  expect(apps).toContainEqual(expect.objectContaining({ id: 'reference-app', launchUrl: `${appUrl}/launch` }));
  const now = new Date();
  await utimes(join(projectRoot, 'templates/app/home.eta'), now, now);
  await expect.poll(run.output, { timeout: 30_000 }).toContain('app restarted');
  expect(run.output()).not.toContain('sandbox restarted');
  run.child.kill('SIGTERM');
  expect(await run.exited).toBe(0);
  expect(run.output()).not.toContain('ended unexpectedly');
  for (const url of [sandboxUrl, appUrl]) await expect(fetch(url!)).rejects.toThrow();
}, 120_000);

test('a wrong option is a clear error', async () => {
  const run = startCommand('dev', ['--prot', '1']);
  expect(await run.exited).toBe(1);
  expect(run.output()).toContain('usage: npm run dev');
});
