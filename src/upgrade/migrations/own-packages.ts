import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Migration } from '../migration.ts';

interface Packages {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const wanted = ({ dependencies = {}, devDependencies = {} }: Packages) =>
  Object.entries({ ...dependencies, ...devDependencies })
    .map((one) => one.join('@'))
    .toSorted()
    .join();
const command = ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'];

/** The lock file is the kit's after a merge; packages that a fork added are in it again only when npm has written it. */
export const ownPackages: Migration = {
  name: 'own-packages',
  async detect({ folder }) {
    const read = async (name: string) =>
      JSON.parse(await readFile(join(folder, name), 'utf8')) as Packages & { packages?: Record<string, Packages> };
    const lock = (await read('package-lock.json')).packages?.[''] ?? {};
    return wanted(await read('package.json')) === wanted(lock) ? [] : ['package-lock.json'];
  },
  writes: () => [],
  async apply({ folder }) {
    try {
      await promisify(execFile)('npm', command, { cwd: folder });
      return [];
    } catch {
      return [
        {
          name: 'own-packages',
          place: 'package-lock.json',
          what: `it lacks packages of yours, and npm could not add them: npm ${command.join(' ')}`,
        },
      ];
    }
  },
};
