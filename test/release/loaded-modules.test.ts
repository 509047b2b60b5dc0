/** Modules that the processes of the kit must not load. One import anywhere brings them back. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';

const tellAtExit = "process.on('exit', () => console.log('loaded ' + JSON.stringify(process.moduleLoadList)))";

/** Of Node's own, by the time that the process ends. */
function loadedBy(...args: readonly string[]): string[] {
  const tell = `data:text/javascript,${encodeURIComponent(tellAtExit)}`;
  const printed = execFileSync(process.execPath, ['--import', tell, ...args], { encoding: 'utf8' });
  return JSON.parse(/^loaded (.*)$/m.exec(printed)?.[1] ?? '') as string[];
}

test("the sandbox does without Node's HTTP client", () => {
  const isClient = (name: string) => name.includes('undici');
  const command = fileURLToPath(new URL('../../src/commands/sandbox.ts', import.meta.url));
  expect(loadedBy(command, '--help').filter(isClient)).toEqual([]);
  expect(loadedBy('--input-type=module', '-e', "import 'node:http'").filter(isClient)).not.toEqual([]);
});

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
