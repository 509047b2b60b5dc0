/** The last release of the kit, from the history of the repository. */
import { execFile, execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot, sharedFolder } from './folders.ts';
import { unless } from './needs.ts';

const git = (...args: string[]) => execFileSync('git', ['-C', projectRoot, ...args], { encoding: 'utf8' }).trim();

/** The commit of the last release. Null if the history is not here. */
function findCommit(): string | null {
  const version = readdirSync(join(projectRoot, 'lab/releases'))
    .map((name) => name.replace(/\.json$/, ''))
    .toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .at(-1);
  try {
    return git('log', '-1', '--format=%H', `--grep=^Release ${version}$`) || null;
  } catch {
    return null;
  }
}

const commit = findCommit();

/** The code of the last release. */
export const lastRelease = unless(
  commit !== null,
  'the commit of the last release is not here',
  'clone the whole history: git fetch --unshallow',
);

/** Writes the code of the last release to a folder, with the packages of this one. */
export async function lastReleaseFolder(): Promise<string> {
  const folder = await sharedFolder();
  const archive = join(folder, 'release.tar');
  git('archive', '--output', archive, commit!);
  await promisify(execFile)('tar', ['-xf', archive, '-C', folder]);
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}
