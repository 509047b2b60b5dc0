import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { KitError } from '../contract/kit-error.ts';
import { readArguments, wrongArguments } from '../commands/arguments.ts';
import { runCommand } from '../commands/command.ts';
import { Git } from './git.ts';
import { conflictPlaces, mergeKit } from './merge.ts';
import type { Fork, Todo } from './migration.ts';
import { migrations } from './migrations/index.ts';
import { countOwnLines } from './own-lines.ts';
import { todoFile, writeTodos } from './todos.ts';

const usage = `usage: npm run upgrade -- --from REMOTE --to REF: takes a later kit into your fork
       npm run upgrade -- --continue | --abort

  --from REMOTE  where the kit is: an address, a remote's name, or a folder
  --to REF       the release, branch or commit to take
  --continue     after you have resolved the conflicts that it named
  --abort        back to the commit that you had before

It refuses a tree with uncommitted changes. Your room (src/my-app, templates/my-app, test/my-app) stays as
it is. Migrations do what a release asks of a fork; ${todoFile} lists what they cannot do, and npm test fails
until you have done it. Wherever it stopped, --abort restores what you had,
unless you have gone on from there since.`;

/** Kept within .git: what is under way, and how far it is. */
interface UnderWay {
  readonly before: string;
  readonly base: string;
  readonly kit: string;
  /** The branch; empty where none was checked out. */
  readonly branch: string;
  readonly pid: number;
  /** `merging` until the merge is whole: from then on `--continue` does what is left. */
  readonly phase: 'merging' | 'merged';
  /** Of the migrations that are through. */
  readonly todos: readonly Todo[];
  readonly rewritten: readonly string[];
  readonly written: readonly string[];
}

await runCommand(async () => {
  const { values } = readArguments(usage, {
    options: {
      from: { type: 'string' },
      to: { type: 'string' },
      continue: { type: 'boolean' },
      abort: { type: 'boolean' },
    },
  });
  const callerFolder = process.env['INIT_CWD'] ?? process.cwd();
  const folder = (await new Git(callerFolder).run('rev-parse', '--show-toplevel')).trim();
  const git = new Git(folder);
  const statePath = resolve(
    folder,
    (await git.run('rev-parse', '--git-path', 'marketplace-app-kit-upgrade.json')).trim(),
  );
  const underWay = await readState(statePath);

  if (values.abort) return abort(git, statePath, underWay);
  if (values.continue) {
    if (!underWay) throw new KitError('no_upgrade', 'no upgrade is under way here');
    if (underWay.phase === 'merging' || !(await isMerged(git, underWay)))
      throw new KitError(
        'not_merged',
        'the merge is not whole: it was stopped, or you have ended it. Go back with --abort, and begin again',
      );
    const open = await git.lines('diff', '--name-only', '--diff-filter=U');
    if (open.length > 0)
      throw new KitError(
        'conflicts',
        `resolve these first, and add them:\n${(await conflictPlaces(folder, open)).map((one) => `  ${one}`).join('\n')}`,
      );
    return finish({ git, folder, ...underWay }, statePath, underWay);
  }
  if (values.from === undefined || values.to === undefined) throw wrongArguments('give --from and --to', usage);
  if (underWay)
    throw new KitError(
      'upgrade_under_way',
      'an upgrade is under way here: end it with --continue, or go back with --abort',
    );
  return begin(git, folder, statePath, { from: addressOf(values.from, callerFolder), to: values.to });
});

function addressOf(from: string, folder: string): string {
  return !isAbsolute(from) && existsSync(resolve(folder, from)) ? resolve(folder, from) : from;
}

async function begin(
  git: Git,
  folder: string,
  statePath: string,
  { from, to }: { from: string; to: string },
): Promise<number> {
  const dirty = (await git.run('status', '--porcelain', '--untracked-files=normal')).trim();
  if (dirty !== '')
    throw new KitError('dirty_tree', `commit or stash your changes first; the upgrade has touched nothing:\n${dirty}`);
  await git.run('fetch', '--no-tags', '--quiet', from, to);
  const kit = (await git.run('rev-parse', 'FETCH_HEAD^{commit}')).trim();
  const before = (await git.run('rev-parse', 'HEAD')).trim();
  if (!git.succeeds('merge-base', before, kit))
    throw new KitError(
      'no_common_history',
      'your fork and this kit have no commit in common: begin forks with git clone, so that git can tell your changes from ours',
    );
  const base = (await git.run('merge-base', before, kit)).trim();
  if (base === kit) {
    console.log('your fork has this kit already: nothing to do');
    return 0;
  }
  const branch = git.succeeds('symbolic-ref', '-q', 'HEAD') ? (await git.run('symbolic-ref', 'HEAD')).trim() : '';
  const state: UnderWay = {
    before,
    base,
    kit,
    branch,
    pid: process.pid,
    phase: 'merging',
    todos: [],
    rewritten: [],
    written: [],
  };
  await writeState(statePath, state);
  console.log(
    `before      ${before.slice(0, 12)}   to go back: npm run upgrade -- --abort\nthe kit     ${kit.slice(0, 12)}`,
  );
  const fork: Fork = { git, folder, before, base, kit };
  const open = await mergeKit(fork);
  await writeState(statePath, { ...state, phase: 'merged' });
  // By the command of the kit that was taken: this process has the earlier one's modules.
  if (open.length === 0)
    return (
      spawnSync(process.execPath, [join(folder, 'src/upgrade/upgrade.ts'), '--continue'], {
        cwd: folder,
        stdio: 'inherit',
        env: { ...process.env, INIT_CWD: folder },
      }).status ?? 1
    );
  const { written, kept } = await countOwnLines(fork, []);
  console.log(`conflicts in ${open.length} files; ${kept} of your ${written} lines are in the tree or in a conflict:`);
  for (const place of await conflictPlaces(folder, open)) console.log(`  ${place}`);
  console.log('Resolve and git add them, and go on with\n\n    npm run upgrade -- --continue');
  return 1;
}

/** Whether the kit is in: in a merge that is under way, or that somebody has committed. */
async function isMerged(git: Git, { before, kit }: UnderWay): Promise<boolean> {
  const head = (await git.run('rev-parse', 'HEAD')).trim();
  if (head === before)
    return (
      git.succeeds('rev-parse', '-q', '--verify', 'MERGE_HEAD') &&
      (await git.run('rev-parse', 'MERGE_HEAD')).trim() === kit
    );
  return (await git.run('rev-list', '--parents', '-n', '1', 'HEAD')).trim() === `${head} ${before} ${kit}`;
}

/** Runs what the later kit asks for, and commits. Begun again it does what is left. */
async function finish(fork: Fork, statePath: string, underWay: UnderWay): Promise<number> {
  const { git, folder, kit } = fork;
  const todos = [...underWay.todos];
  const rewritten = [...underWay.rewritten];
  const written = [...underWay.written];
  for (const migration of migrations) {
    const found = await migration.detect(fork);
    if (found.length === 0) continue;
    written.push(...migration.writes(found));
    await writeState(statePath, { ...underWay, todos, rewritten, written });
    todos.push(...(await migration.apply(fork, found)));
    rewritten.push(...found);
    await writeState(statePath, { ...underWay, todos, rewritten, written });
    await git.run('add', '-A');
    console.log(`${migration.name.padEnd(11)} ${found.join(', ')}`);
  }
  const lines = await countOwnLines(fork, [...rewritten, 'src/steps/registry.ts', 'package-lock.json']);
  todos.push(
    ...lines.lost.map((place) => ({
      name: 'line-lost',
      place,
      what: `the upgrade lost this line of yours: git show ${fork.before.slice(0, 12)}`,
    })),
  );
  await writeTodos(folder, todos);
  await git.run('add', '-A');
  // A person may have committed the merge, or an earlier try all of it.
  if (!git.succeeds('diff', '--cached', '--quiet') || git.succeeds('rev-parse', '-q', '--verify', 'MERGE_HEAD'))
    await git.run('commit', '-q', '--no-verify', '-m', `Upgrade to the kit at ${kit.slice(0, 12)}`);
  await rm(statePath, { force: true });
  console.log(
    `your lines  ${lines.written}: ${lines.kept} kept, ${lines.rewritten} rewritten by migrations, ${lines.lost.length} lost`,
  );
  for (const { name, place, what } of todos) console.log(`to do       ${name} ${place}: ${what}`);
  console.log(
    todos.length > 0
      ? `\nIt is committed. Do what ${todoFile} names, then npm test.`
      : '\nIt is committed. Go on with npm test.',
  );
  return 0;
}

async function abort(git: Git, statePath: string, underWay: UnderWay | null): Promise<number> {
  if (!underWay) throw new KitError('no_upgrade', 'no upgrade is under way here');
  const { before, kit, branch, pid, written } = underWay;
  const head = (await git.run('rev-parse', 'HEAD')).trim();
  const isSameBranch =
    branch === '' ||
    (git.succeeds('symbolic-ref', '-q', 'HEAD') && (await git.run('symbolic-ref', 'HEAD')).trim() === branch);
  if (!isSameBranch || (head !== before && !(await isMerged(git, underWay)))) {
    await rm(statePath, { force: true });
    throw new KitError(
      'moved_on',
      `you have gone on since: nothing was touched, and the upgrade is forgotten. The commit before it is ${before}`,
    );
  }
  // Git leaves its lock where it was killed.
  const lock = resolve(git.folder, (await git.run('rev-parse', '--git-path', 'index.lock')).trim());
  if (existsSync(lock) && !isAlive(pid)) await rm(lock, { force: true });
  await git.run('reset', '--hard', '--quiet', before);
  // Files that the merge or a migration had written, and git did not know yet. There were no others: the tree was clean.
  const kits = new Set(await git.lines('ls-tree', '-r', '--name-only', kit));
  const isOurs = (path: string) =>
    kits.has(path) || [...written, todoFile].some((one) => path === one || path.startsWith(`${one}/`));
  for (const path of await git.lines('ls-files', '--others', '--exclude-standard'))
    if (isOurs(path)) await rm(join(git.folder, path), { force: true });
  await rm(statePath, { force: true });
  console.log(`back at ${before.slice(0, 12)}`);
  return 0;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return pid !== process.pid;
  } catch {
    return false;
  }
}

/** Whole or not at all. */
async function writeState(path: string, state: UnderWay): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(state));
  await rename(`${path}.new`, path);
}

async function readState(path: string): Promise<UnderWay | null> {
  const text = await readFile(path, 'utf8').catch(() => null);
  return text === null ? null : (JSON.parse(text) as UnderWay);
}
