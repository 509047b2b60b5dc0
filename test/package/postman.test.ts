// @module-tag all
/** Newman, Postman's command line, runs each request of the collection in order. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';
import { needing, registry } from '../support/needs.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

const run = promisify(execFile);

interface Report {
  readonly run: {
    readonly failures: readonly { readonly source: { readonly name: string }; readonly error: { readonly message: string } }[]; // oxfmt-ignore
    readonly executions: readonly { readonly item: { readonly name: string } }[];
  };
}

test('every request of the collection succeeds', needing(await registry()), async () => {
  const [sandbox, folder] = [await startSandbox({ seed: 'demo' }), await testFolder()];
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts'];
  await run('npm', ['install', ...quiet, 'newman@6.2.2'], { cwd: folder });
  const report = join(folder, 'report.json');
  const variables = ['--env-var', `baseUrl=${sandbox.url}`, '--env-var', `apiKey=${apiKey}`];
  await run(
    join(folder, 'node_modules/.bin/newman'),
    ['run', 'collection.json', ...variables, '--reporters', 'json', '--reporter-json-export', report],
    { cwd: join(projectRoot, 'docs/postman') },
  ).catch((error: unknown) => {
    // Newman also ends with an error if a request fails, but then it has written a report.
    if (!existsSync(report)) throw error;
  });
  const { run: ran } = JSON.parse(await readFile(report, 'utf8')) as Report;
  expect(ran.failures.map(({ source, error }) => `${source.name}: ${error.message}`)).toEqual([]);
  const { item } = JSON.parse(await readFile(join(projectRoot, 'docs/postman/collection.json'), 'utf8')) as { item: { item: { name: string }[] }[] }; // oxfmt-ignore
  const names = new Set(ran.executions.map((execution) => execution.item.name));
  expect(item.flatMap((group) => group.item).filter(({ name }) => !names.has(name))).toEqual([]);
});
