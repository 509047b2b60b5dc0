// @module-tag all
/** The README's first command, and a test that needs further programs, on a machine with Debian, git, Node and npm only. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';
import { needing, registry, unless } from '../support/needs.ts';

const root = unless(process.getuid?.() === 0, 'a bare machine needs root', 'run the tests as root');

test(
  'npm run demo delivers, and the tests pass whose programs npm test installs',
  { timeout: 1_800_000, ...needing('debootstrap', root, await registry()) },
  async (context) => {
    const { stdout } = await promisify(execFile)('node', ['scripts/fresh.mjs', '--part'], {
      cwd: projectRoot,
      maxBuffer: 64 * 1024 * 1024,
    }).catch((error: unknown) => error as { stdout: string });
    const skipped = /^test:fresh skipped: (.*)$/m.exec(stdout)?.[1];
    if (skipped !== undefined) {
      context.task.meta.skipped = { why: skipped, remedy: 'npm run test:fresh says it too' };
      context.skip(skipped);
    }
    expect(stdout).toMatch(/^2 passed, 0 failed$/m);
  },
);
