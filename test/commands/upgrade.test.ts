// @module-tag all
/** Forks of the last releases, as their owners made them, rehearse the merge with this kit: nearly all without an edit by hand. */
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { hitsOf, notesAfter } from '../../src/commands/upgrade/notes.ts';
import { tryMerge } from '../../src/commands/upgrade/rehearse.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { needing, unless } from '../support/needs.ts';

const run = promisify(execFile);
const git = (folder: string, ...args: string[]) =>
  run('git', ['-C', folder, '-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args]).then(({ stdout }) => stdout);

/** Commits of the releases. */
const releases = { '0.2.0': 'd223d1c1', '1.0.0': '807d24c5' } as const;
const isThere = await git(projectRoot, 'cat-file', '-e', `${releases['0.2.0']}^{commit}`).then(() => true, () => false); // oxfmt-ignore
const withHistory = needing(
  unless(isThere, 'the releases are not in the history of this clone', 'git fetch --unshallow'),
);

type Edit = (folder: string) => Promise<void>;
const app = 'src/my-app/app.ts';
const change =
  (file: string, ...replacements: (readonly [from: RegExp, to: string])[]): Edit =>
  async (folder) => {
    const text = await readFile(join(folder, file), 'utf8');
    const changed = replacements.reduce((sum, [from, to]) => sum.replace(from, to), text);
    if (changed === text) throw new Error(`${file} has not changed`);
    await writeFile(join(folder, file), changed);
  };
const write =
  (file: string, text: string): Edit =>
  async (folder) => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  };
const all =
  (...edits: Edit[]): Edit =>
  async (folder) => {
    for (const edit of edits) await edit(folder);
  };
const ownStep: Edit = async (folder) => {
  const to = 'src/my-app/steps/brighten';
  await cp(join(folder, 'src/my-app/steps/scale'), join(folder, to), { recursive: true });
  await change(`${to}/index.ts`, [/id: 'scale'/, "id: 'brighten'"])(folder);
};

/** What owners of forks do (docs/forking.md). */
const owners: Readonly<Record<string, Edit>> = {
  'a name': change(
    app,
    [/name: 'Reference app'/, "name: 'Flood mapper'"],
    [/id: 'reference-app'/, "id: 'flood-mapper'"],
  ),
  'an icon': all(
    write('src/my-app/icon.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    change(app, [/(\n {2}description: )/, "\n  icon: new URL('./icon.svg', import.meta.url),$1"]),
  ),
  'a step that nobody lists yet': ownStep,
  'a step of its own': all(
    ownStep,
    change(
      app,
      [/(import scale from [^\n]*\n)/, "$1import brighten from './steps/brighten/index.ts';\n"],
      [/(\n {2}(?:steps: \[[^\]]*?)scale)/, '$1, brighten'],
    ),
  ),
  'a profile': write(
    'src/my-app/profile.ts',
    "import { wireProfile } from '../index.ts';\n\nexport default wireProfile({ name: 'ours', limits: { chunkBytes: 64_000_000 } });\n",
  ),
  'a style': write('templates/my-app/assets/app.css', 'h1 { color: teal; }\n'),
  'a page': all(
    write(
      'templates/my-app/about.eta',
      "<% layout('./layout', { title: it.title, here: it.here }) %>\n<h1>About</h1>\n",
    ),
    change(app, [
      /(\n {2}templates: [^\n]*\n)/,
      "$1  pages: [{ path: 'about', title: 'About', template: 'about' }],\n",
    ]),
  ),
  'a test': write(
    'test/my-app/own.test.ts',
    "import { expect, test } from 'vitest';\ntest('ours', () => expect(1).toBe(1));\n",
  ),
  'no example any more': all(
    async (folder) => rm(join(folder, 'src/my-app/steps/scale'), { recursive: true }),
    async (folder) => rm(join(folder, 'test/my-app/scale.test.ts')),
    change(app, [/import scale from [^\n]*\n/, ''], [/,?\s*\bscale\b(?=[,\s]*\])/, '']),
  ),
  'a workflow': write('.github/workflows/ours.yml', 'name: ours\non: push\njobs: {}\n'),
};

async function forkOf(version: keyof typeof releases, edit: Edit): Promise<string> {
  const fork = join(await testFolder(), 'fork');
  await git(projectRoot, 'clone', '--quiet', '--shared', projectRoot, fork);
  await git(fork, 'checkout', '--quiet', '-b', 'ours', releases[version]);
  await edit(fork);
  await git(fork, 'add', '--all');
  await git(fork, 'commit', '--quiet', '-m', 'ours');
  return fork;
}

const forks = (['0.2.0', '1.0.0'] as const).flatMap((version) =>
  Object.entries(owners).map(([name, edit]) => ({ version, name, edit })),
);
const kept: string[] = [];
const conflicts: string[] = [];

describe('twenty forks', { ...withHistory, concurrent: false }, () => {
  test.each(forks)('$version with $name', { timeout: 60_000 }, async ({ version, name, edit }) => {
    const fork = await forkOf(version, edit);
    const before = await git(fork, 'rev-parse', 'HEAD');
    const copy = join(await testFolder(), 'trial');
    const index = await readFile(join(fork, '.git/index'));
    const trial = await tryMerge(fork, copy);
    expect(await readFile(join(fork, '.git/index'))).toEqual(index);
    expect(trial.version).toBe(version);
    // It is merged, or only the choice of files is left to commit.
    const merged = git(copy, 'merge-base', '--is-ancestor', 'FETCH_HEAD', 'HEAD').then(() => true, () => false); // oxfmt-ignore
    expect((await merged) || trial.kept.length > 0).toBe(true);
    expect(trial.changed.length).toBeGreaterThan(0);
    if (trial.kept.length > 0) kept.push(`${version} with ${name}`);
    if (trial.conflicts.length > 0) conflicts.push(`${version} with ${name}`);
    // The fork is only read.
    expect(await git(fork, 'status', '--porcelain')).toBe('');
    expect(await git(fork, 'rev-parse', 'HEAD')).toBe(before);
    expect(await git(fork, 'for-each-ref', '--format=%(refname)', 'refs/heads')).toContain('refs/heads/ours');
  });

  test('merge without an edit by hand, and few need the choice of their own file', () => {
    expect([forks.length, conflicts]).toEqual([20, []]);
    expect(kept.length, kept.join()).toBeLessThanOrEqual(4);
  });
});

describe('the command', withHistory, () => {
  const upgrade = (...args: string[]) =>
    run(process.execPath, [join(projectRoot, 'bin/marketplace-app-kit.mjs'), 'upgrade', ...args]).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      (error: unknown) => {
        const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
        return { code, text: stdout + stderr };
      },
    );

  test(
    'names the notes that hit, keeps the file of the owner, and checks types and tests',
    { timeout: 300_000 },
    async () => {
      const usesRemoved = write('src/my-app/replay.ts', '// one\n// two\nexport const name = "platformModels";\n');
      const fork = await forkOf('0.2.0', all(owners['a step of its own']!, owners['a test']!, usesRemoved));
      const { code, text } = await upgrade('--check', fork);
      expect(text).toMatch(/Unreleased: `platformModel`.*\n +src\/my-app\/replay\.ts:3 {2}platformModels/);
      expect(text).toContain('git checkout --ours -- src/my-app/app.ts');
      expect(text).toContain('types: good');
      expect(text).toContain('tests: good');
      expect(code).toBe(0);
    },
  );

  test('a changed file of the kit is a conflict, with a way out', { timeout: 60_000 }, async () => {
    const fork = await forkOf('0.2.0', write('src/contract/limits.ts', 'export const limits = {};\n'));
    const { code, text } = await upgrade('--check', fork, '--merge-only');
    expect([code, text]).toEqual([
      1,
      expect.stringContaining('src/contract/limits.ts: a file of the kit; keep the change'),
    ]);
  });

  test('says what is no fork', async () => {
    const folder = await testFolder();
    expect(await upgrade()).toMatchObject({
      code: 1,
      text: expect.stringContaining('--check FORK is required') as string,
    });
    expect(await upgrade('--check', folder)).toMatchObject({
      code: 1,
      text: expect.stringContaining('is no fork') as string,
    });
    await git(folder, 'init', '--quiet');
    await writeFile(join(folder, 'package.json'), '{"version": "1.0.0"}');
    await git(folder, 'add', '--all');
    await git(folder, 'commit', '--quiet', '-m', 'another project');
    expect(await upgrade('--check', folder)).toMatchObject({
      code: 1,
      text: expect.stringContaining('has no commit in common') as string,
    });
  });
});

test('notes are those of later releases, the oldest first, and only names of code are looked for', () => {
  const page =
    '# Upgrading\n\n## Unreleased\n\n- `newName` and `ndvi` are new.\n\n## To 1.0.0\n\n- `oldThing` is gone; `run.eta` changed.\n\n## To 0.2.0\n\n- `older` went.\n';
  const notes = notesAfter('0.2.0', page);
  expect(notes.map(({ release, names }) => [release, names])).toEqual([
    ['1.0.0', ['oldThing', 'run.eta']],
    ['Unreleased', ['newName']],
  ]);
  const files = new Map([
    ['src/my-app/a.ts', 'x\nimport { oldThing } from "y";\nconst oldThings = 1;'],
    ['templates/my-app/run.eta', ''],
  ]);
  expect(hitsOf(notes, files).map(({ name, file, line }) => [name, file, line])).toEqual([
    ['oldThing', 'src/my-app/a.ts', 2],
    ['run.eta', 'templates/my-app/run.eta', 1],
  ]);
});
