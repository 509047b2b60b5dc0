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
  // The entry for the work of a step, which runs in that child.
  const ofWork = './src/steps/raster.ts';
  expect(entries).toEqual(expect.arrayContaining(['./src/index.ts', ofWork]));
  for (const entry of entries) if (entry !== ofWork) load(entry);
  expect(() => load(ofWork)).toThrow(/gdal-async.* is loaded by/);
});

test('a confined process loads the step and the readers, and nothing of the servers: each run pays for it', () => {
  const load = (path: string) =>
    loadWithout(/\/(better-sqlite3|express|axios|sharp|onnxruntime-node)\/|\/src\/(contract\/index|server)/, path);
  load('./src/app/processing/step-job.ts');
  load('./src/steps/slope/index.ts');
  expect(() => load('./src/app/open-stores.ts')).toThrow(/is loaded by/);
});

test('an app loads OpenTelemetry only for traces', () => {
  // prom-client loads the API.
  loadWithout(/\/@opentelemetry\/(sdk|exporter|resources|otlp)/, './src/app/create-app.ts');
});

test('an app loads pg-boss only for a shared database', () => {
  loadWithout(/\/pg-boss\//, './src/app/create-app.ts');
  expect(() => loadWithout(/\/pg-boss\//, './src/app/runs/pg-boss-run-queue.ts')).toThrow(/is loaded by/);
});
