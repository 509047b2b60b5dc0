/** Modules that the processes of the kit must not load. One import anywhere brings them back. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';

/** Loads a module in a process of its own, which throws at the first import that matches. */
function loadWithout(forbidden: RegExp, path: string): string {
  const hook = `import { registerHooks } from 'node:module';
registerHooks({ resolve(name, context, next) {
  const found = next(name, context);
  if (${forbidden}.test(found.url)) throw new Error(found.url + ' is loaded by ' + context.parentURL);
  return found;
} });`;
  return execFileSync(
    process.execPath,
    [
      ...['--import', `data:text/javascript,${encodeURIComponent(hook)}`],
      ...['--input-type=module', '-e', `await import('${path}'); process.exit()`],
    ],
    { cwd: projectRoot, encoding: 'utf8', stdio: 'pipe' },
  );
}

test('no entry of the package and no server loads GDAL: only the confined child does', () => {
  const load = (path: string) => loadWithout(/\/gdal-async\//, path);
  const { exports } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { types: string }>;
  };
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry.types.replace('dist', 'src').replace('.d.ts', '.ts')],
  );
  expect(entries).toContain('./src/index.ts');
  for (const entry of entries) load(entry);
  expect(() => load('./src/raster/cog.ts')).toThrow(/gdal-async.* is loaded by/);
});

test('a confined process loads the step and the readers, and nothing of the servers: each run pays for it', () => {
  const load = (path: string) =>
    loadWithout(/\/(better-sqlite3|express|axios|sharp|onnxruntime-node)\/|\/src\/(contract\/index|server)/, path);
  load('./src/app/processing/step-job.ts');
  load('./src/steps/slope/index.ts');
  expect(() => load('./src/app/open-stores.ts')).toThrow(/is loaded by/);
});

test('a child loads of gdal-async what it uses: neither the search for its binding nor, until asked, its writer of XML', () => {
  const script = `await import('./src/child/light-gdal.ts');
const { default: gdal } = await import('gdal-async');
const { createRequire } = await import('node:module');
const count = () => Object.keys(createRequire(import.meta.url).cache).length;
const before = count();
const raster = gdal.open('/vsimem/one.tif', 'w', 'GTiff', 1, 1, 1, 'Byte');
raster.flush();
const xml = gdal.wrapVRT({ bands: [{ sources: [raster.bands.get(1)], description: 'named' }] });
console.log(JSON.stringify([before, count(), xml.includes('<Description>named</Description>')]));`;
  const [before, after, isRight] = JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: projectRoot, encoding: 'utf8' }),
  ) as [number, number, boolean];
  expect(before).toBeLessThan(30);
  expect(after).toBeGreaterThan(before);
  expect(isRight).toBe(true);
});
