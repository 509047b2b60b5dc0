import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { changedByFork, type Migration } from '../migration.ts';

/** What a fork changed of the wire within the contract belongs into its profile: only a person knows what was meant. */
export const ownContract: Migration = {
  name: 'own-contract',
  since: '0.2.0',
  async detect(fork) {
    const changed = await changedByFork(fork, 'src/contract/');
    const texts = await Promise.all(
      changed.map(async (path) => [
        await readFile(join(fork.folder, path), 'utf8').catch(() => null),
        await fork.git.show(fork.kit, path),
      ]),
    );
    return changed.filter((_, i) => texts[i]![0] !== texts[i]![1]);
  },
  async apply(fork, found) {
    return Promise.all(
      found.map(async (path) => {
        const [, line = '1'] =
          /^@@ -\d+(?:,\d+)? \+(\d+)/m.exec(await fork.git.run('diff', '-U0', fork.base, fork.before, '--', path)) ??
          [];
        return {
          name: 'own-contract',
          place: `${path}:${line}`,
          what: `you changed the wire here; say it in src/my-app/profile.ts (docs/contract.md), and take the kit's file: git checkout ${fork.kit.slice(0, 12)} -- ${path}`,
        };
      }),
    );
  },
};
