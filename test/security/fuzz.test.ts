// @module-tag all
/** A minute of odd requests, other ones each time. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';

test('a minute of odd requests: no 5xx, none late, memory back to where it was', async () => {
  const args = ['--expose-gc', '--import', './scripts/preload.mjs', 'lab/drill/fuzz.ts', '--seconds', '60'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: projectRoot }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toMatch(/^no fault$/m);
});
