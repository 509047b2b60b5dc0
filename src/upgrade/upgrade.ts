import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { KitError } from '../contract/index.ts';
import { readArguments, wrongArguments } from '../commands/arguments.ts';
import { runCommand } from '../commands/command.ts';
import { Git } from './git.ts';
import { conflictPlaces, mergeKit } from './merge.ts';
import { room, type Fork, type Migration, type Todo } from './migration.ts';
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
until you have done it. Wherever it stopped, --abort restores what you had.`;

/** Kept within .git: what is under way. */
interface UnderWay {
  readonly before: string;
  readonly base: string;
  readonly kit: string;
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
  const statePath = join(folder, (await git.run('rev-parse', '--git-path', 'marketplace-app-kit-upgrade.json')).trim());
  const underWay = await readState(statePath);

  if (values.abort) return abort(git, statePath, underWay);
  if (values.continue) {
    if (!underWay) throw new KitError('no_upgrade', 'no upgrade is under way here');
    const open = await git.lines('diff', '--name-only', '--diff-filter=U');
    if (open.length > 0)
      throw new KitError(
        'conflicts',
        `resolve these first, and add them:\n${(await conflictPlaces(folder, open)).map((one) => `  ${one}`).join('\n')}`,
      );
    return finish({ git, folder, ...underWay }, statePath);
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
  await writeFile(statePath, JSON.stringify({ before, base, kit } satisfies UnderWay));
  console.log(
    `before      ${before.slice(0, 12)}   to go back: npm run upgrade -- --abort\nthe kit     ${kit.slice(0, 12)}`,
  );
  const fork: Fork = { git, folder, before, base, kit };
  const open = await mergeKit(fork);
  if (open.length === 0) return finish(fork, statePath);
  const { written, kept } = await countOwnLines(fork, []);
  console.log(`conflicts in ${open.length} files; ${kept} of your ${written} lines are in the tree or in a conflict:`);
  for (const place of await conflictPlaces(folder, open)) console.log(`  ${place}`);
  console.log('Resolve and git add them, and go on with\n\n    npm run upgrade -- --continue');
  return 1;
}

/** Runs what the later kit asks for, and commits. Begun again it does what is left. */
async function finish(fork: Fork, statePath: string): Promise<number> {
  const { git, folder, kit } = fork;
  const todos: Todo[] = [];
  const rewritten: string[] = [];
  // Those of the kit that is being taken: this one may not know them yet.
  const module = pathToFileURL(join(folder, 'src/upgrade/migrations/index.ts')).href;
  const { migrations } = (await import(module)) as { migrations: readonly Migration[] };
  for (const migration of migrations) {
    const found = await migration.detect(fork);
    if (found.length === 0) continue;
    todos.push(...(await migration.apply(fork, found)));
    await git.run('add', '-A');
    rewritten.push(...found);
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
  await git.run('reset', '--hard', '--quiet', underWay.before);
  // What a migration had written and git did not know yet.
  await git.run('clean', '-fdq', '--', ...room, todoFile);
  await rm(statePath, { force: true });
  console.log(`back at ${underWay.before.slice(0, 12)}`);
  return 0;
}

async function readState(path: string): Promise<UnderWay | null> {
  const text = await readFile(path, 'utf8').catch(() => null);
  try {
    return text === null ? null : (JSON.parse(text) as UnderWay);
  } catch {
    // Killed while it was written: nothing had been touched yet.
    await rm(path, { force: true });
    return null;
  }
}
