/** Modules that the processes of the kit must not load. One import anywhere brings them back. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';

const withoutGdal = `import { registerHooks } from 'node:module';
registerHooks({ resolve(name, context, next) {
  if (name === 'gdal-async') throw new Error('GDAL is loaded by ' + context.parentURL);
  return next(name, context);
} });`;

test('no entry of the package and no server loads GDAL: only the confined child does', () => {
  const hook = `data:text/javascript,${encodeURIComponent(withoutGdal)}`;
  const load = (path: string) =>
    execFileSync(
      process.execPath,
      ['--import', hook, '--input-type=module', '-e', `await import('${path}'); process.exit()`],
      { cwd: projectRoot, encoding: 'utf8', stdio: 'pipe' },
    );
  const { exports } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { types: string }>;
  };
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry.types.replace('dist', 'src').replace('.d.ts', '.ts')],
  );
  expect(entries).toContain('./src/index.ts');
  for (const entry of entries) load(entry);
  expect(() => load('./src/raster/cog.ts')).toThrow('GDAL is loaded by');
});
