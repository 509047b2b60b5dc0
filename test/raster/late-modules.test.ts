/** What a child does not read before its job begins. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { find } from '../../src/raster/child/late-binding-path.ts';
import { runInChild } from '../../src/raster/index.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import type { ReadModules } from '../support/late-modules-job.ts';

const module = new URL('../support/late-modules-job.ts', import.meta.url);
const packagePath = createRequire(import.meta.url).resolve('gdal-async/package.json');

test("GDAL's bindings read an XML library when they write XML, and never what finds their own", async () => {
  const read = await runInChild<ReadModules>({
    module,
    input: { description: 'red & <green>' },
    imports: [module],
    workFolder: await testFolder(),
    confinement: await testConfinement('auto'),
  });
  expect(read.atImport).toContain('gdal-async');
  expect(read.atImport).not.toContain('xmlbuilder2');
  expect(read.later).toContain('xmlbuilder2');
  expect(read.later).not.toContain('@mapbox/node-pre-gyp');
  expect(read.vrt).toContain('<Description>red &amp; &lt;green&gt;</Description>');
});

test('their library is found as the package finds it', () => {
  const real = createRequire(packagePath)('@mapbox/node-pre-gyp') as { find(path: string): string };
  expect(find(packagePath)).toBe(real.find(packagePath));
  expect(existsSync(find(packagePath))).toBe(true);
});

test('where there is none for this Node, the package is asked', async () => {
  const folder = await testFolder();
  const real = join(folder, 'node_modules', '@mapbox', 'node-pre-gyp');
  await mkdir(real, { recursive: true });
  await writeFile(join(real, 'index.js'), "exports.find = (path) => 'found for ' + path;");
  expect(find(join(folder, 'package.json'))).toBe(`found for ${join(folder, 'package.json')}`);
});

test('the bindings use nothing else of the two', async () => {
  const source = (name: string) => readFile(join(packagePath, '..', 'lib', name), 'utf8');
  const uses = [...(await source('gdal.js')).matchAll(/\bbinary\b(.\w*)/g)].map(([, use]) => use?.trim());
  expect(uses).toEqual(['', '.find']);
  expect(await source('wrapVRT.js')).toMatch(/^const \{ fragment \} = require\('xmlbuilder2'\)$/m);
});
