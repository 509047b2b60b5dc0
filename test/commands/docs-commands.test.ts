/** Every command that a page shows runs as it stands, in a copy of the repository, in the order of its page. */
import { execFile } from 'node:child_process';
import { access, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { flow } from '../../src/commands/demo/flow.ts';
import { readArguments } from '../../src/commands/arguments.ts';
import { demoArguments, readDemoOptions, usage } from '../../src/commands/demo/options.ts';
import type { Report } from '../../src/commands/demo/report.ts';
import { stageInputs, stageNamed } from '../../src/commands/demo/stage-inputs.ts';
import myApp from '../../src/my-app/app.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { mutant } from '../support/mutant.ts';
import { needing } from '../support/needs.ts';
import { apiKey, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

const run = promisify(execFile);

/** Commands that no test here can run, and where they are run instead. */
const elsewhere: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^npm (run demo|test)$/, 'npm run test:fresh'],
  [/^npm run (demo|dev|certify)? +#/, 'a project made by `new`: test/package'],
  [/^npm test +#/, 'a project made by `new`: test/package'],
  [/^npm run (dev|sandbox|app)\b/, 'servers: test/commands, test/end-to-end'],
  [/^npm run (certify|drift)\b/, 'test/end-to-end/certify, test/drift'],
  [/^npm run connect\b/, 'a person who answers: test/commands/connect'],
  [/^npm run can-i-deploy\b/, 'a report and a record: test/commands/can-i-deploy'],
  [/^npm run new-step\b/, 'test/commands/new-step'],
  [/^npm run kit -- test-step\b/, 'test/commands/test-step'],
  [/^npm run demo -- --step snow-cover\b/, 'a step that new-step makes: test/commands/new-step'],
  [/^npx (oxlint|oxfmt)\b/, 'npm test itself'],
  [/^npm run test:(all|fresh|images)\b/, '.ci/run'],
  [/^npm run (bench|lab)\b/, 'measurements, run by hand; the files that they name are there'],
  [/^npm run setup\b/, 'the set-up of every command'],
  [/^npm run docs\b/, 'test/release/site'],
  [/^npx marketplace-app-kit certify\b/, 'test/package'],
  [/^npm run kit -- forget-user\b/, 'test/commands/forget-user'],
  [/^npm run kit -- ops\b/, 'test/commands/ops'],
  [/^gdalinfo 'STACIT/, 'a running sandbox'],
  [/^npm install marketplace-app-kit\b/, 'test/package'],
  [
    /^(?:[A-Z_]+=\S+ )*(docker|podman|git|curl|export|cd|python3|sudo|node|kill|cp|openssl|ssh|psql|pg_dump|pg_restore|kubectl|sqlite3)\b/,
    'not a command of the kit',
  ],
];

interface Shown {
  readonly page: string;
  readonly lines: readonly string[];
}

async function shownCommands(): Promise<Shown[]> {
  const pages = (await readdir(join(projectRoot, 'docs'), { recursive: true })).filter(
    // Another test plays the tutorials, and writes their files.
    (name) => name.endsWith('.md') && !name.startsWith('tutorial'),
  );
  const shown: Shown[] = [];
  for (const page of ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)]) {
    const text = await readFile(join(projectRoot, page), 'utf8');
    const blocks = [...text.matchAll(/^ *```(?:sh|bash)\n([^]*?)^ *```$/gm)].map(([, code = '']) => code);
    // A line that ends with a backslash goes on.
    const lines = blocks.flatMap((code) =>
      code
        .replaceAll(/ *\\\n */g, ' ')
        .split('\n')
        .map((line) => line.trim()),
    );
    const runs = lines.filter((line) => line !== '' && !elsewhere.some(([pattern]) => pattern.test(line)));
    if (runs.length > 0) shown.push({ page, lines: runs.filter((line) => !line.startsWith('#')) });
  }
  return shown;
}

const all = await shownCommands();

test('the files that npm run lab is shown with are there', async () => {
  const pages = [
    'CONTRIBUTING.md',
    'docs/inference.md',
    'docs/security.md',
    'docs/reliability.md',
    'docs/steps-testing.md',
  ];
  const texts = await Promise.all(pages.map((page) => readFile(join(projectRoot, page), 'utf8')));
  const files = texts.flatMap((text) => [...text.matchAll(/npm run lab -- (?:--expose-gc )?(\S+\.m?[jt]s)/g)]);
  expect(files.length).toBeGreaterThan(8);
  for (const [, file] of files) await expect(access(join(projectRoot, file!)), file).resolves.toBeUndefined();
});

test('the pages show commands of the kit', () => {
  expect(
    all.flatMap(({ lines }) => lines).filter((line) => line.startsWith('npm run demo -- ')).length,
  ).toBeGreaterThan(15);
});

const demoCommand = 'npm run demo -- ';
let place: Promise<{ sandbox: TestSandbox; app: TestApp; inputDir: string }> | undefined;
let demos = 0;

/** Runs the flow of a demo command. All pages of steps share one sandbox and one app, because their start takes longer than the flow. */
async function demoInPlace(line: string, folder: string): Promise<void> {
  place ??= (async () => {
    const [sandbox, inputDir] = await Promise.all([startSandbox({ seed: 'demo' }), testFolder()]);
    return { sandbox, inputDir, app: await startApp(sandbox.url, { env: { INPUT_DIR: inputDir } }) };
  })();
  const { sandbox, app, inputDir } = await place;
  const split = await run('bash', ['-c', `set -- ${line.slice(demoCommand.length)}; printf '%s\\0' "$@"`]);
  const given = readDemoOptions(readArguments(usage, demoArguments, split.stdout.split('\0').slice(0, -1)), folder);
  const scene = `scene-${++demos}`;
  const stagedFiles = await stageInputs(given.inputs, join(inputDir, scene));
  for (const [name, path] of Object.entries(given.namedInputs)) await stageNamed(name, path, join(inputDir, name));
  await mkdir(given.outDir, { recursive: true });
  const said: string[] = [];
  const report: Report = { line: (text) => void said.push(text), run: () => {}, end: () => {} };
  const options = { ...given, stepId: given.stepId ?? myApp.steps[0]!.id, definition: myApp };
  const at = { sandbox: { url: sandbox.url, apiKey }, app, scene, stagedFiles, folder: await testFolder() };
  const code = await flow(options, at, report);
  expect(code, `${line}\n${said.join('\n')}`).toBe(0);
}

const copied = ['bin', 'docs', 'test', 'package-lock.json', 'tsconfig.json', 'vitest.config.ts'];
/** Copies that no page uses now. Pages write to the same folders, so no two use one at a time; a new copy compiles everything. */
const free: string[] = [];
const aCopy = () => mutant([], copied);

describe.concurrent('runs as it stands', { tags: [onlyInAll], ...needing('gdal-programs', 'python-gdal') }, () => {
  test.each(all)('$page', { timeout: 900_000 }, async ({ page, lines }) => {
    const folder = await (free.pop() ?? aCopy());
    for (const line of lines) {
      if (page.startsWith('docs/reference/') && line.startsWith(demoCommand)) {
        await demoInPlace(line, folder);
        continue;
      }
      const { stdout, stderr } = await run('bash', ['-ec', line], {
        cwd: folder,
        env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
        maxBuffer: 64 * 1024 * 1024,
      }).catch((error: unknown) => {
        const { stdout: out, stderr: err } = error as { stdout?: string; stderr?: string };
        throw new Error(`${line}\n${out}${err}`, { cause: error });
      });
      if (line.startsWith(demoCommand) && !line.includes('--decision'))
        expect(`${stdout}${stderr}`, line).toMatch(/^sha256 fetched +[0-9a-f]{64} +equal/m);
    }
    free.push(folder);
  });
});
