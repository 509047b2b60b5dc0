// @module-tag all
/** Both images and the pods, on a machine that has built them before: the first build takes longer than all other tests. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanUpAfterFile } from '../support/cleanup.ts';
import { projectRoot } from '../support/folders.ts';
import { needing, unless } from '../support/needs.ts';

const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'marketplace-app-kit', 'images');
const built = unless(existsSync(join(cache, 'built')), 'the images were not built here before', 'npm run test:images');

let run: Promise<{ status: number | null; said: string }> | undefined;
/** Runs the script once for all tests of this file. */
const runOnce = () =>
  (run ??= (async () => {
    const child = spawn(process.execPath, [...process.execArgv, join(projectRoot, 'test/images/images.ts')]);
    const closed = once(child, 'close') as Promise<[number | null]>;
    cleanUpAfterFile(async () => {
      child.kill();
      await closed;
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => (said += part));
    const [status] = await closed;
    return { status, said };
  })());

const timeout = 1_200_000;

test('both images work in the composition', { timeout, ...needing('podman', built) }, async (context) => {
  const { status, said } = await runOnce();
  const [, reason] = /^test:images skipped: (.*)$/m.exec(said) ?? [];
  if (reason !== undefined) context.skip(reason);
  expect(status, said.slice(-8_000)).toBe(0);
  expect(said).toMatch(/^[1-9]\d passed, 0 failed$/m);
});

test(
  'the pods of deploy/kubernetes deliver a run, and another one through a roll-out',
  { timeout, ...needing('podman', built) },
  async (context) => {
    const { said } = await runOnce();
    const [, reason] = /^test:images skipped: (.*)$/m.exec(said) ?? [];
    if (reason !== undefined) context.skip(reason);
    expect(said).toContain('passed  a run is delivered by the pods');
    expect(said).toContain('passed  a run that waited through the roll-out is delivered by the new pods');
  },
);
