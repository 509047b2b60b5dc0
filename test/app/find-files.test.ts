/** Files of INPUT_DIR: no link leads out, neither a file nor one of a folder. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { findFiles } from '../../src/app/processing/run-input.ts';
import { UnsafePathError } from '../../src/files/index.ts';
import { testFolder } from '../support/folders.ts';

let inputs: string;
let outside: string;

beforeEach(async () => {
  const folder = await testFolder();
  // The sibling's name begins with that of the folder.
  [inputs, outside] = [join(folder, 'inputs'), join(folder, 'inputs-of-others')];
  await mkdir(join(inputs, 'scene'), { recursive: true });
  await mkdir(outside);
  await writeFile(join(inputs, 'scene', 'B1.tif'), 'own');
  await writeFile(join(outside, 'secret.tif'), 'secret');
});

const found = (path: string) => findFiles(inputs, path, 'raster');

test('control: a folder, and a file in it', async () => {
  expect(await found('scene')).toEqual([join(inputs, 'scene', 'B1.tif')]);
  expect(await found('scene/B1.tif')).toEqual([join(inputs, 'scene', 'B1.tif')]);
});

test.each([
  ['a file in a folder', async () => symlink(join(outside, 'secret.tif'), join(inputs, 'scene', 'x.tif')), 'scene'],
  ['a file', async () => symlink(join(outside, 'secret.tif'), join(inputs, 'x.tif')), 'x.tif'],
  ['a folder whose name begins alike', async () => symlink(outside, join(inputs, 'linked')), 'linked'],
  ['a folder, and a file below it', async () => symlink(outside, join(inputs, 'linked')), 'linked/secret.tif'],
])('%s that is a link to the outside is refused', async (_what, link, path) => {
  await link();
  await expect(found(path)).rejects.toThrow(UnsafePathError);
});

test('a path with dots to a sibling is refused', async () => {
  await expect(found('../inputs-of-others')).rejects.toThrow(UnsafePathError);
});
