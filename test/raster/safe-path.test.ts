import { link, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { resolveFileInside, resolveInside, UnsafePathError } from '../../src/files/index.ts';
import { testFolder } from '../support/folders.ts';

async function inputFolder(): Promise<string> {
  const folder = await testFolder();
  await mkdir(join(folder, 'root', 'scene'), { recursive: true });
  await writeFile(join(folder, 'root', 'scene', 'a.tif'), 'x');
  await writeFile(join(folder, 'root', 'a..b.tif'), 'x');
  await writeFile(join(folder, 'secret'), 'x');
  await symlink(join(folder, 'secret'), join(folder, 'root', 'link.tif'));
  await symlink(folder, join(folder, 'root', 'up'));
  await link(join(folder, 'root', 'scene', 'a.tif'), join(folder, 'root', 'hard.tif'));
  return join(folder, 'root');
}

describe('refused', () => {
  test.each([
    ['', 'nothing'],
    ['/etc/passwd', 'absolute'],
    ['../secret', 'leaves the folder'],
    ['scene/../../secret', 'leaves the folder'],
    ['..', 'leaves the folder'],
    ['scene\\..\\..\\secret', 'leaves the folder, the other way'],
    ['\\etc\\passwd', 'absolute, the other way'],
    ['/vsicurl/http://example.org/a.tif', "GDAL's network file system"],
    ['vsicurl/http://example.org/a.tif', 'the same without its slash'],
    ['/vsizip/scene/a.zip', 'a virtual file system'],
    ['/VSIMEM/x', 'in capitals'],
    ['http://example.org/a.tif', 'an address'],
    ['file:///etc/passwd', 'an address'],
    ['GTIFF_DIR:1:scene/a.tif', 'a driver prefix'],
    ['NETCDF:"/etc/passwd":x', 'a driver prefix'],
    ['C:\\a.tif', 'a drive'],
    ['scene/a.tif\0.png', 'NUL'],
    ['link.tif', 'a link out of the folder'],
    ['up/secret', 'a folder that is a link out'],
    ['scene/nothing.tif', 'not there'],
  ])('%j: %s', async (path, _why) => {
    await expect(resolveFileInside(await inputFolder(), path)).rejects.toThrow(UnsafePathError);
  });

  test('a folder where a file is wanted', async () => {
    await expect(resolveFileInside(await inputFolder(), 'scene')).rejects.toThrow(/not a regular file/);
  });
});

test.each(['scene/a.tif', 'a..b.tif', './scene/a.tif', 'hard.tif'])('accepted: %j', async (path) => {
  const root = await inputFolder();
  expect((await resolveFileInside(root, path)).startsWith(root)).toBe(true);
});

test('accepted: a folder', async () => {
  const root = await inputFolder();
  expect(await resolveInside(root, 'scene')).toBe(join(root, 'scene'));
});
