import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { changedByFork, type Fork, type Migration } from '../migration.ts';

/** What a fork changed of the wire within the contract belongs into its profile: only a person knows what was meant. */
export const ownContract: Migration = {
  name: 'own-contract',
  async detect(fork) {
    // The kit may have moved what the fork changed: its contract as a whole tells whether that is still there.
    if (fork.git.succeeds('diff', '--quiet', fork.kit, '--', 'src/contract')) return [];
    return changedByFork(fork, 'src/contract/');
  },
  writes: () => [],
  async apply(fork, found) {
    return Promise.all(
      found.map(async (path) => ({
        name: 'own-contract',
        place: await placeOf(fork, path),
        what: `you changed the wire in ${path}; say it in src/my-app/profile.ts (docs/contract.md), and take the kit's contract again: git checkout ${fork.kit.slice(0, 12)} -- src/contract`,
      })),
    );
  },
};

/** Where the first line that the fork changed stands now: the kit may have moved its file. */
async function placeOf({ git, folder, base, before }: Fork, path: string): Promise<string> {
  const diff = await git.run('diff', '-U0', base, before, '--', path);
  const [, changed = ''] = /^\+(?!\+\+)\s*(.*)$/m.exec(diff) ?? [];
  const files = await git.lines('ls-files', '--', path, 'src/contract');
  for (const file of changed === '' ? [] : files) {
    const text = await readFile(join(folder, file), 'utf8').catch(() => '');
    const line = text.split('\n').findIndex((one) => one.includes(changed));
    if (line >= 0) return `${file}:${line + 1}`;
  }
  return path;
}
