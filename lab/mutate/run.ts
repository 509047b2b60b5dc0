/**
 * `npm run lab -- lab/mutate/run.ts PATH...`: makes small mistakes in a copy of the code, one at a time, and runs the tests near
 * them. A mistake that no test sees survives, and is printed with its line.
 *
 *   --tests GLOB   the tests (repeatable). Default: at most 12 of those that import the module or a module that does, and without one
 *                  of those that reach it over the fewest modules
 *   --most N       at most so many mistakes, chosen by the seed (default: 40; 0 for all)
 *   --seed N       (default: 1)
 *   --goal N       ends with 1 if fewer percent are seen (default: 0)
 *
 * Steps run in confined child processes and have their own list of mistakes (`lab/drill/mutate-steps.ts`).
 */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mutantsOf, withMutant, type Mutant } from './mutants.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: 'string', multiple: true, default: [] },
    most: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    goal: { type: 'string', default: '0' },
  },
});
const caller = process.env['INIT_CWD'] ?? process.cwd();
/** Time of one run of the tests beyond which a mistake counts as seen: it has made an end impossible. */
const longestRunMs = 180_000;
/** Most test files for one mistake. Those whose text has the names of the module come first. */
const mostTests = 12;

interface Outcome extends Mutant {
  readonly file: string;
  readonly isSeen: boolean;
}

const files = (await Promise.all(positionals.map((path) => modulesIn(resolve(caller, path))))).flat();
if (files.length === 0) throw new Error('name a module or a folder of src, such as src/app/launch');
const texts = new Map(await Promise.all(globSync('{src,test}/**/*.ts', { cwd: root }).map(async (file) => [file, await readFile(join(root, file), 'utf8')] as const))); // oxfmt-ignore
const all = files.flatMap((file) => mutantsOf(file, texts.get(file) ?? '').map((mutant) => ({ ...mutant, file })));
const chosen = chosenOf(all, Number(values.most), Number(values.seed));
console.log(`${all.length} mistakes in ${files.length} modules; ${chosen.length} are tried`);

const copy = await mkdtemp(join(tmpdir(), 'kit-mutate-'));
/** Ends the tests that run. */
let endTests = () => {};
process.once('SIGINT', () => {
  endTests();
  void rm(copy, { recursive: true, force: true }).then(() => process.exit(130));
});
try {
  const outcomes = await tryAll();
  report(outcomes);
  const seen = outcomes.filter(({ isSeen }) => isSeen).length;
  if (seen * 100 < Number(values.goal) * outcomes.length) process.exitCode = 1;
} finally {
  await rm(copy, { recursive: true, force: true });
}

async function tryAll(): Promise<Outcome[]> {
  await cp(root, copy, {
    recursive: true,
    filter: (path) => !/^(node_modules|\.git|data|dist|lab\/site)(\/|$)/.test(relative(root, path)),
  });
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  const outcomes: Outcome[] = [];
  const good = new Set<string>();
  for (const mutant of chosen) {
    const { file } = mutant;
    const tests = values.tests.length > 0 ? globSync(values.tests, { cwd: root }) : testsNear(file);
    if (tests.length === 0) throw new Error(`no test is near ${file}: name them by --tests`);
    const key = tests.join(' ');
    if (!good.has(key) && !(await passes(tests))) throw new Error(`without a mistake, these tests fail: ${key}`);
    good.add(key);
    const code = texts.get(file) ?? '';
    await writeFile(join(copy, file), withMutant(code, mutant));
    const isSeen = !(await passes(tests));
    await writeFile(join(copy, file), code);
    console.log(`${isSeen ? 'seen    ' : 'SURVIVED'} ${file}:${mutant.line} ${mutant.kind}`);
    outcomes.push({ ...mutant, isSeen });
  }
  return outcomes;
}

/** Runs the tests in the copy. */
function passes(tests: readonly string[]): Promise<boolean> {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--bail', '1', '--testTimeout', '30000', ...tests], {
    cwd: copy,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, TEST_ALL: 'yes' },
  });
  // With its workers, which a mistake may have made deaf.
  endTests = () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'));
  const timer = setTimeout(endTests, longestRunMs);
  return new Promise((done, failed) => {
    child.once('error', failed);
    child.once('exit', (code) => {
      clearTimeout(timer);
      endTests = () => {};
      done(code === 0);
    });
  });
}

/** Test files that import a module, or a module that imports it. Without one, those that reach it over the fewest modules, test helpers among them. */
function testsNear(file: string): string[] {
  const importersOf = (names: readonly string[]) =>
    [...texts]
      .filter(([path, text]) => importsOf(path, text).some((name) => names.includes(name)))
      .map(([path]) => path);
  const known = new Set([file]);
  let near: string[] = [];
  for (let [level, isFar] = [[file], false]; level.length > 0; isFar = true) {
    level = importersOf(level.filter((path) => !path.endsWith('.test.ts'))).filter((path) => !known.has(path));
    for (const path of level) known.add(path);
    near = [...near, ...level.filter((path) => path.endsWith('.test.ts'))];
    if (isFar && near.length > 0) break;
  }
  const exported = [...(texts.get(file) ?? '').matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm)].map(([, name = '']) => name); // oxfmt-ignore
  const names = new RegExp(`\\b(?:${[basename(file, '.ts'), basename(dirname(file)), ...exported].join('|')})\\b`, 'g');
  const countOf = (path: string) => `${path} ${texts.get(path) ?? ''}`.match(names)?.length ?? 0;
  return near.toSorted((a, b) => countOf(b) - countOf(a)).slice(0, mostTests);
}

function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, name = '']) => join(dirname(path), name));
}

async function modulesIn(path: string): Promise<string[]> {
  const found = (await stat(path)).isDirectory()
    ? globSync('**/*.ts', { cwd: path }).map((name) => join(path, name))
    : [path];
  // Lists of exports have nothing to mutate.
  return found.filter((file) => basename(file) !== 'index.ts').map((file) => relative(root, file));
}

/** An even choice that depends on the seed alone. */
function chosenOf<T>(items: readonly T[], most: number, seed: number): T[] {
  if (most === 0 || items.length <= most) return [...items];
  let state = seed >>> 0;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const numbered = items.map((item, index) => ({ item, index, place: random() }));
  return numbered
    .toSorted((a, b) => a.place - b.place)
    .slice(0, most)
    .toSorted((a, b) => a.index - b.index)
    .map(({ item }) => item);
}

function report(outcomes: readonly Outcome[]): void {
  console.log('\n| room | tried | seen | |\n| --- | --: | --: | --: |');
  const rooms = Map.groupBy(outcomes, ({ file }) => dirname(file));
  for (const [room, tried] of [...rooms, ['all', outcomes] as const]) {
    const seen = tried.filter(({ isSeen }) => isSeen).length;
    console.log(`| ${room} | ${tried.length} | ${seen} | ${Math.round((100 * seen) / Math.max(1, tried.length))} % |`);
  }
}
