import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { lstat, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as z from 'zod';
import { KitError } from '../../contract/index.ts';
import { kitRoot } from '../../files/index.ts';

const run = promisify(execFile);

/** Folders of a fork's owner (docs/forking.md). */
export const ownFolders = ['src/my-app', 'templates/my-app', 'test/my-app'] as const;
const largestText = 1_000_000;
const checkMs = 15 * 60_000;
const shownLines = 40;

/** Result of a merge that was only tried. */
export interface MergeTrial {
  /** Version of the kit that the fork was made of, or last merged. */
  readonly version: string;
  /** Files of the fork that differ from the release that it was made of. */
  readonly changed: readonly string[];
  /** Files in the owner's folders that both have changed: the merge keeps those of the fork. */
  readonly kept: readonly string[];
  /** Other files that git could not merge by itself. */
  readonly conflicts: readonly string[];
}

/** Result of a check of the merged fork. */
export interface CheckResult {
  readonly name: 'types' | 'tests';
  readonly isGood: boolean;
  /** Its output, if it is not good. */
  readonly text: string;
}

/** The environment without git's variables and settings of the caller, which could name another repository or change the merge. */
function gitEnvironment(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'));
  const own = {
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
  };
  return { ...Object.fromEntries(others), ...own };
}

/** Runs git. Throws `KitError` with git's words. */
async function git(folder: string, ...args: readonly string[]): Promise<string> {
  const settings = [
    ...['core.fsmonitor=false', 'core.quotePath=false', 'core.hooksPath=/dev/null', 'commit.gpgsign=false'],
    ...['safe.directory=*', 'user.name=upgrade', 'user.email=upgrade@localhost'],
  ].flatMap((setting) => ['-c', setting]);
  try {
    return (
      await run('git', ['-C', folder, ...settings, ...args], { env: gitEnvironment(), maxBuffer: 64 * 1024 * 1024 })
    ).stdout;
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    throw new KitError('git_failed', `git ${args[0]} failed in ${folder}: ${stderr?.trim() ?? String(error)}`, {
      cause: error,
    });
  }
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

/** True if a fork has changes that no commit has. */
export const isDirty = async (fork: string): Promise<boolean> =>
  linesOf(await git(fork, 'status', '--porcelain')).length > 0;

/** Merges this kit into a copy of the fork in `folder`. The fork itself is only read. Throws `KitError` if they have no history in common. */
export async function tryMerge(fork: string, folder: string): Promise<MergeTrial> {
  await git(kitRoot, 'clone', '--quiet', '--shared', fork, folder);
  await git(folder, 'fetch', '--quiet', kitRoot, 'HEAD');
  const base = await git(folder, 'merge-base', 'HEAD', 'FETCH_HEAD').catch(() => {
    throw new KitError(
      'no_common_history',
      `${fork} has no commit in common with this kit, so git cannot merge it: a fork begins with git clone (docs/upgrading.md)`,
    );
  });
  const changed = linesOf(await git(folder, 'diff', '--name-only', base.trim(), 'HEAD'));
  // It fails if there are conflicts.
  await git(folder, 'merge', '--quiet', '--no-edit', 'FETCH_HEAD').catch(() => {});
  const unmerged = linesOf(await git(folder, 'diff', '--name-only', '--diff-filter=U'));
  const kept = unmerged.filter((file) => ownFolders.some((own) => file.startsWith(`${own}/`)));
  for (const file of kept) await keepOurs(folder, file);
  if (unmerged.length === 0)
    await git(folder, 'merge-base', '--is-ancestor', 'FETCH_HEAD', 'HEAD').catch(() => {
      throw new KitError('git_failed', 'git has not merged this version of the kit, and names no conflict');
    });
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(await git(folder, 'show', `${base.trim()}:package.json`)));
  return { version, changed, kept, conflicts: unmerged.filter((file) => !kept.includes(file)) };
}

/** Resolves a conflict by the file of the fork. Git has no version of a file that the fork has deleted. */
async function keepOurs(folder: string, file: string): Promise<void> {
  const stages = await git(folder, 'ls-files', '--unmerged', '--', file);
  if (/ 2\t/.test(stages)) {
    await git(folder, 'checkout', '--quiet', '--ours', '--', file);
    await git(folder, 'add', '--', file);
  } else await git(folder, 'rm', '--quiet', '--', file);
}

/** Texts of the fork's own files, by path: those of its folders, and those that it has changed. */
export async function ownTexts(fork: string, changed: readonly string[]): Promise<Map<string, string>> {
  const listed = linesOf(await git(fork, 'ls-files', '--', ...ownFolders));
  const texts = new Map<string, string>();
  for (const file of new Set([...listed, ...changed])) {
    if (file === 'package-lock.json' || !existsSync(join(fork, file))) continue;
    const found = await lstat(join(fork, file));
    if (!found.isFile() || found.size > largestText) continue;
    const bytes = await readFile(join(fork, file));
    if (!bytes.includes(0)) texts.set(file, bytes.toString('utf8'));
  }
  return texts;
}

/** Checks the types of the merged fork, and runs the tests of its owner, with the packages of this kit. */
export async function checkMerged(folder: string): Promise<CheckResult[]> {
  const packages = join(kitRoot, 'node_modules');
  if (!existsSync(join(folder, 'node_modules'))) await symlink(packages, join(folder, 'node_modules'));
  const check = async (name: CheckResult['name'], program: string, args: readonly string[]): Promise<CheckResult> => {
    try {
      await run(process.execPath, [join(packages, program), ...args], {
        cwd: folder,
        // The tests of a fork need no key of a platform.
        env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: process.env['TMPDIR'] },
        timeout: checkMs,
        maxBuffer: 64 * 1024 * 1024,
      });
      return { name, isGood: true, text: '' };
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      return { name, isGood: false, text: `${stdout}${stderr}`.trim().split('\n').slice(-shownLines).join('\n') };
    }
  };
  const types = await check('types', 'typescript/bin/tsc', ['--noEmit', '-p', '.']);
  const hasTests = existsSync(join(folder, 'test/my-app'));
  return hasTests ? [types, await check('tests', 'vitest/vitest.mjs', ['run', 'test/my-app'])] : [types];
}
