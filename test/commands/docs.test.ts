/** README and docs are true. */
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { appErrors, type AppErrorCode } from '../../src/app/app-errors.ts';
import { checkParameters } from '../../src/app/processing/step-parameters.ts';
import { errorCodes } from '../../src/contract/index.ts';
import { pageOf, type BenchResults } from '../../lab/bench/page.ts';
import { endpoints } from '../support/documented.ts';
import allSteps from '../support/all-steps.ts';
import { projectRoot } from '../support/folders.ts';

const text = (path: string) => readFile(join(projectRoot, path), 'utf8');

test('the step of docs/steps.md is the example of the room, which a test runs', async () => {
  const shown = /```ts\n(import[^]*?)```/.exec(await text('docs/steps.md'))?.[1];
  expect(shown).toBe(await text('src/my-app/steps/scale/index.ts'));
});

test('docs/performance.md is made of what the benches have measured', async () => {
  const results = JSON.parse(await text('lab/bench/results.json')) as BenchResults;
  expect(await text('docs/performance.md')).toBe(await pageOf(results));
});

test('docs/configuration.md names every setting, and no other', async () => {
  const page = await text('docs/configuration.md');
  const code = (
    await Promise.all(
      ['src/server/settings.ts', 'src/app/config.ts', 'src/sandbox/config.ts', 'src/child/confinement-settings.ts'].map(
        text,
      ),
    )
  ).join('');
  const settings = new Set(
    [...code.matchAll(/^ {2,4}([A-Z][A-Z_]+):|readSecret\(env, '([A-Z_]+)'\)/gm)].map(([, a, b]) => a ?? b!),
  );
  const documented = new Set(
    [...page.matchAll(/`([A-Z][A-Z_]+)`/g)]
      .map(([, name]) => name!)
      .filter(
        (name) =>
          !name.endsWith('_FILE') &&
          ![
            'X',
            'NAME',
            'PATH',
            'NODE_ENV',
            'MY_APP',
            'PLATFORM_TOKEN',
            'OTEL_EXPORTER_OTLP_HEADERS',
            'OTEL_RESOURCE_ATTRIBUTES',
          ].includes(name),
      ),
  );
  expect([...documented].sort()).toEqual([...settings].sort());
});

test('test/security/README.md names attacks that tests try', async () => {
  const page = await text('test/security/README.md');
  const rows = [...page.matchAll(/^\|[^|]+\| `([a-z-]+\.test\.ts)` \| (.+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(12);
  for (const [, file, names] of rows) {
    // The attacks of this file are the laboratory's.
    const paths =
      file === 'attacks.test.ts'
        ? ['on-children', 'on-words', 'on-servers'].map((name) => `lab/attack/${name}.ts`)
        : [`test/security/${file}`];
    const tests = (await Promise.all(paths.map((path) => text(path)))).join('\n');
    for (const [, name] of names!.matchAll(/`([^`]+)`/g))
      expect(tests.replaceAll("\\'", "'"), `${file}: ${name}`).toContain(name!.replaceAll("\\'", "'"));
  }
});

test('docs/contract.md names every file of the contract that assumes something', async () => {
  const page = await text('docs/contract.md');
  for (const name of await readdir(join(projectRoot, 'src/contract'), { recursive: true })) {
    if (name.endsWith('.ts') && (await text(join('src/contract', name))).includes('@assumed'))
      expect(page, name).toContain(`\`${name}\``);
  }
});

test('docs/sandbox.md names every path that the sandbox serves', async () => {
  const page = await text('docs/sandbox.md');
  for (const path of await endpoints()) expect(page, path).toContain(path);
});

test('bodies of docs/app-api.md start a run of the step that they name', async () => {
  const blocks = [...(await text('docs/app-api.md')).matchAll(/```json\n([^]*?)```/g)];
  const bodies = blocks
    // A body of a page is an object.
    .map(([, code = '']) => JSON.parse(code) as Record<string, unknown>)
    .filter((body) => 'stepId' in body);
  expect(bodies.length).toBeGreaterThan(0);
  for (const { stepId, parameters } of bodies) {
    const step = allSteps.steps.find(({ id }) => id === stepId);
    expect(() => checkParameters(step!, parameters), String(stepId)).not.toThrow();
  }
});

test('docs/app-api.md names every call of the app', async () => {
  const page = await text('docs/app-api.md');
  const routers = ['src/app/runs/routes.ts', 'src/app/catalog/routes.ts'];
  const code = (await Promise.all(routers.map(text))).join('');
  const calls = [...code.matchAll(/router\.(get|post)\('([^']+)'/g)].map(
    ([, method, path]) => `${method!.toUpperCase()} api${path!.replaceAll(/:(\w+)/g, '{$1}')}`,
  );
  expect(calls.length).toBeGreaterThan(10);
  for (const call of calls) expect(page).toContain(`\`${call}\``);
});

test('docs/platform.md names every section and path, and files that are there', async () => {
  const page = await text('docs/platform.md');
  for (const section of [
    '## 2.',
    '## 3.',
    '## 4.',
    '## 5.',
    '## 6.',
    '## 7.',
    '## 8.',
    '## 9.',
    '| 2.8 ',
    '| 3.3 ',
    '| 4.8 ',
  ])
    expect(page).toContain(section);
  for (const path of (await endpoints()).filter((one) => one.startsWith('/public'))) expect(page, path).toContain(path);
  const named = [...page.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path]) => path!);
  expect(named.length).toBeGreaterThan(20);
  for (const path of named) await expect(stat(join(projectRoot, path)), path).resolves.toBeDefined();
});

/** Anchors of headings, as GitHub makes them. */
const anchorsOf = (page: string) =>
  [...page.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

test('every link between the pages leads somewhere', async () => {
  const pages = [
    ...['README.md', 'CONTRIBUTING.md', 'examples/README.md', 'examples/python/README.md'],
    ...(await readdir(join(projectRoot, 'docs'), { recursive: true }))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  for (const page of pages) {
    for (const [, path = '', anchor] of (await text(page)).matchAll(/\]\(([^)#:]*)(?:#([^)]+))?\)/g)) {
      const target = path === '' ? page : join(page, '..', path);
      await expect(stat(join(projectRoot, target)), `${page}: ${path}`).resolves.toBeDefined();
      if (anchor !== undefined) expect(anchorsOf(await text(target)), `${page}: ${path}`).toContain(anchor);
    }
  }
});

test('a page that the package ships links to nothing that the package lacks', async () => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: projectRoot,
  });
  const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const shipped = new Set(packed.files.map(({ path }) => path));
  const pages = [...shipped].filter((path) => path.endsWith('.md'));
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/steps.md', 'docs/reference/errors.md']));
  const lacking: string[] = [];
  for (const page of pages)
    for (const [, link = '', image = ''] of (await text(page)).matchAll(/\]\(([^)#:\s]+)[^):]*\)|src="([^":]+)"/g)) {
      const target = normalize(join(page, '..', link || image)).replace(/\/$/, '');
      if (!shipped.has(target) && ![...shipped].some((path) => path.startsWith(`${target}/`)))
        lacking.push(`${page}: ${link || image}`);
    }
  expect(lacking).toEqual([]);
});

test('the README shows the heart of examples/minimal.ts as it is, in under 700 words', async () => {
  const [readme, minimal] = [await text('README.md'), await text('examples/minimal.ts')];
  const [, shown = ''] = /```ts\n([^]*?)```/.exec(readme) ?? [];
  expect(shown).toContain('createOperation');
  expect(minimal).toContain(shown);
  const words = readme.replaceAll(/```[^]*?```/g, '').split(/\s+/).length;
  expect(words).toBeLessThan(700);
});

/** Codes in quotes that a call of one of these functions begins with, after a status or not. */
const thrown =
  /(?:\b(?:KitError|\w*Error|failure|refusal|super)\(\s*(?:\d{3},\s*)?(?:[\w.! ]+ \? '(?<either>[a-z_]+)' : )?|\bcode: )'(?<code>[a-z_]+)'/g;

test('each error code of app, steps and client is in the table of docs/reference/errors.md', async () => {
  const rooms = ['app', 'child', 'files', 'platform-client', 'raster', 'server', 'steps'];
  const paths = globSync(`src/{${rooms.join(',')}}/**/*.ts`, { cwd: projectRoot });
  const found = new Map<string, string>();
  for (const path of paths)
    for (const { groups } of (await text(path)).matchAll(thrown))
      for (const code of [groups?.['code'], groups?.['either']]) if (code !== undefined) found.set(code, path);
  expect(found.size).toBeGreaterThan(80);
  // A code of zod.
  found.delete('custom');
  expect([...found.keys()]).toEqual(
    expect.arrayContaining(['no_container_image', 'container_not_started', 'step_defect']),
  );
  const known = new Set(Object.keys(appErrors));
  expect([...found].filter(([code]) => !known.has(code))).toEqual([]);
});

test('docs/troubleshooting.md and the table agree on who can fix an error', async () => {
  const page = await text('docs/troubleshooting.md');
  const section = page.slice(page.indexOf('## A run failed'), page.indexOf('## Certification fails'));
  const rows = [...section.matchAll(/^\| (`[^|]+) \| ([^|]+) \|/gm)].flatMap(([, codes = '', people = '']) =>
    [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']) => [code, people] as const),
  );
  expect(rows.length).toBeGreaterThan(15);
  const words = { app: 'developer of the app', user: 'user', operator: 'operator', platform: 'platform' };
  const disagree = rows.filter(([code, people]) => !people.includes(words[appErrors[code as AppErrorCode].fixedBy]));
  expect(disagree).toEqual([]);
});

test('docs/troubleshooting.md names codes that exist', async () => {
  const page = await text('docs/troubleshooting.md');
  const named = [...page.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, code]) => code!);
  expect(named.length).toBeGreaterThan(30);
  const known = new Set([...Object.keys(appErrors), ...errorCodes]);
  expect(named.filter((code) => !known.has(code))).toEqual([]);
});
