// @module-tag all
/** Messages of commands say what was wrong, and what would be right. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';

async function endOf(name: string, ...args: string[]) {
  const { exited, output } = startCommand(name, args);
  return { code: await exited, text: output() };
}

test('a wire profile that is not there', async () => {
  const path = join(await testFolder(), 'none.json');
  const { code, text } = await endOf('certify', '--profile', path);
  expect([code, text]).toEqual([1, expect.stringContaining(`--profile ${path}: there is no such file`)]);
  expect(text).not.toContain('JSON');
});

test('a wire profile with a misspelt call', async () => {
  const path = join(await testFolder(), 'profile.json');
  await writeFile(path, '{"calls":{"createOperatoin":{}}}');
  const { code, text } = await endOf('certify', '--profile', path);
  expect([code, text]).toEqual([1, expect.stringContaining('createOperatoin')]);
  expect(text).toContain('createOperation');
});

test('an input that the catalog does not read', async () => {
  const folder = await testFolder();
  await writeFile(join(folder, 'junk.tif'), 'no raster');
  const { code, text } = await endOf('demo', '--input', join(folder, 'junk.tif'), '--out', await testFolder());
  expect(code).toBe(1);
  expect(text).toContain(
    "from the app's own folder: the catalog does not read all of it, because it is not georeferenced or not a raster",
  );
});

test('certify says how long it waits for an app, and what the app needs', async () => {
  const { child, exited, output } = startCommand('certify', [
    '--launch-url',
    'http://127.0.0.1:9/launch',
    '--port',
    '0',
  ]);
  await vi.waitFor(
    () =>
      expect(output()).toMatch(
        /waiting up to \d+ s for an app at http:\/\/127\.0\.0\.1:9: start it with this sandbox as its PLATFORM_URL/,
      ),
    { timeout: 60_000, interval: 100 },
  );
  child.kill('SIGINT');
  expect(await exited).toBe(130);
});
