import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { mergeJson } from './merge-json.ts';
import type { Fork } from './migration.ts';
import { room } from './migration.ts';

/** Files that the kit decides: what a fork wrote into them a migration carries elsewhere. */
const ofTheKit = [
  /^src\/steps\/(registry|index)\.ts$/,
  /^templates\/(app|shared)\//,
  /^package-lock\.json$/,
  /^docs\/openapi\.json$/,
];

/**
 * Merges the later kit into the fork, uncommitted. The room stays as the fork has it; a conflict that only the layout made is
 * none. Gives the paths that a person has to look at.
 */
export async function mergeKit(fork: Fork): Promise<string[]> {
  const { git, kit, before } = fork;
  try {
    await git.run('merge', '--no-commit', '--no-ff', kit);
  } catch (error) {
    // It fails where there are conflicts, too: those are looked at below.
    if ((await unmerged(fork)).length === 0) throw error;
  }
  if (git.has(before, 'src/my-app')) await keepRoom(fork);
  for (const path of await unmerged(fork)) {
    if (ofTheKit.some((pattern) => pattern.test(path))) await takeKits(fork, path);
    else await mergeLaidOut(fork, path);
  }
  // A line in the old registry may have merged into what stands there now.
  for (const path of ['src/steps/registry.ts', 'src/steps/index.ts']) await takeKits(fork, path);
  return unmerged(fork);
}

const unmerged = async ({ git }: Fork) => [...new Set(await git.lines('diff', '--name-only', '--diff-filter=U'))];

async function keepRoom({ git, before }: Fork): Promise<void> {
  for (const path of await git.lines('ls-files', '--', ...room))
    if (!git.has(before, path)) await git.run('rm', '-q', '-f', '--', path);
  for (const folder of room) if (git.has(before, folder)) await git.run('checkout', '-q', before, '--', folder);
}

async function takeKits({ git, folder, kit }: Fork, path: string): Promise<void> {
  if (!git.has(kit, path)) {
    await git.run('rm', '-q', '-f', '--ignore-unmatch', '--', path);
    await rm(join(folder, path), { force: true });
  } else await git.run('checkout', '-q', kit, '--', path);
}

/** Once more, with all three laid out by the kit's formatter: what one side only laid out anew is no change then. */
async function mergeLaidOut({ git, folder }: Fork, path: string): Promise<void> {
  const [base, mine, kits] = [await git.blob(`:1:${path}`), await git.blob(`:2:${path}`), await git.blob(`:3:${path}`)];
  if (base === null || mine === null || kits === null) return;
  // A picture or an archive has no lines: it stays as git left it, for a person.
  if ([base, mine, kits].some((bytes) => bytes.includes(0))) return;
  if (path === 'package.json') {
    const merged = mergeJson(base.toString(), mine.toString(), kits.toString());
    if (merged !== null) {
      await writeFile(join(folder, path), merged);
      await git.run('add', '--', path);
      return;
    }
  }
  const work = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-upgrade-'));
  try {
    const names = ['mine', 'base', 'kit'].map((name) => join(work, `${name}${extname(path)}`));
    for (const [i, text] of [mine, base, kits].entries()) await writeFile(names[i]!, text);
    layOut(folder, names);
    const { status } = spawnSync('git', ['merge-file', '-q', '-L', 'yours', '-L', 'before', '-L', 'the kit', ...names]);
    await writeFile(join(folder, path), await readFile(names[0]!));
    if (status === 0) await git.run('add', '--', path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** With the formatter that the fork has installed; without one, or for what it does not know, the files stay as they are. */
function layOut(folder: string, files: readonly string[]): void {
  const prettier = join(folder, 'node_modules/prettier/bin/prettier.cjs');
  if (!existsSync(prettier)) return;
  spawnSync(
    process.execPath,
    [
      prettier,
      '--no-editorconfig',
      '--config',
      join(folder, '.prettierrc.json'),
      '--ignore-path',
      '/dev/null',
      '--write',
      ...files,
    ],
    { stdio: 'ignore' },
  );
}

/** Places of conflict marks: `path:line`. */
export async function conflictPlaces(folder: string, paths: readonly string[]): Promise<string[]> {
  const places: string[] = [];
  for (const path of paths) {
    const text = await readFile(join(folder, path), 'utf8').catch(() => null);
    const lines = (text ?? '').split('\n').flatMap((line, i) => (line.startsWith('<<<<<<<') ? [i + 1] : []));
    places.push(...(lines.length > 0 ? lines.map((line) => `${path}:${line}`) : [`${path}: one side removed it`]));
  }
  return places;
}
