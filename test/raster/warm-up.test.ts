/** The compile cache of confined child processes. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { runInChild } from '../../src/child/index.ts';
import { createWarmUp } from '../../src/child/warm-up.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { mutant } from '../support/mutant.ts';
import { confined, needing } from '../support/needs.ts';

const module = new URL('../support/stripper-job.ts', import.meta.url);

test('control: a process without a compile cache loads the TypeScript compiler', async () => {
  const code = `console.log(await (await import('${module.href}')).default())`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    env: { PATH: process.env['PATH'] },
  });
  expect(stdout.trim()).toBe('true');
});

test(
  'a confined child process finds all of its code in the compile cache, after the first one',
  needing(await confined()),
  async () => {
    const confinement = await testConfinement();
    const workFolder = await testFolder();
    const run = () => runInChild<boolean>({ module, input: null, workFolder, confinement });
    await expect.poll(run, { timeout: 300_000, interval: 500 }).toBe(false);
  },
);

test('the work modules of steps are compiled ahead, although the app itself imports none of them', async () => {
  const folder = await testFolder();
  const [app, work, mark] = ['app.mjs', 'work.mjs', 'loaded'].map((name) => join(folder, name)) as [string, string, string]; // oxfmt-ignore
  await writeFile(app, `export default { steps: [{ id: 'a' }, { id: 'b', work: () => import('./work.mjs') }] };`);
  await writeFile(work, `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');`);
  // Without a cache to write, the process leaves nothing in the folder that the test removes.
  createWarmUp(folder, { PATH: process.env['PATH'] ?? '' })([pathToFileURL(app)]);
  await expect.poll(() => existsSync(mark), { timeout: 60_000 }).toBe(true);
});

test('an error in a copy of the kit names the files of that copy, even if another copy compiled them first', async () => {
  const where = 'src/where.ts';
  const code = `console.log((await import('./${where}')).where())`;
  for (let i = 0; i < 2; i++) {
    const copy = await mutant([]);
    await writeFile(join(copy, where), 'export const where = (): string | undefined => new Error().stack;\n');
    const args = ['--import', './scripts/preload.mjs', '--input-type=module', '-e', code];
    for (let again = 0; again < 2; again++) {
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: copy });
      expect(stdout).toContain(`(file://${join(copy, where)}:1:`);
    }
  }
});
