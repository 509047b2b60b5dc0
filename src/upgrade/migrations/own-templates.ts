import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { changedByFork, type Fork, type Migration, type Todo } from '../migration.ts';

const homes = ['templates/app/', 'templates/shared/'];

/** `templates/app/run.eta` is overridden by `templates/my-app/run.eta`, what is shared by its name below `shared/`. */
const overrideOf = (path: string) => path.replace(/^templates\/(app\/)?/, 'templates/my-app/');

/** Templates that a fork edited in the kit's folders move to its own, where they stand in for the kit's. */
export const ownTemplates: Migration = {
  name: 'own-templates',
  async detect(fork) {
    const changed = await changedByFork(fork, ...homes);
    const kept: string[] = [];
    for (const path of changed) {
      // Removed by the fork, or moved already.
      if (!fork.git.has(fork.before, path)) continue;
      if (fork.git.has(fork.before, overrideOf(path))) continue;
      if (!(await isDone(fork, path))) kept.push(path);
    }
    return kept;
  },
  writes: (found) => found.map(overrideOf),
  async apply(fork, found) {
    const todos: Todo[] = [];
    for (const path of found) {
      const mine = await fork.git.blob(`${fork.before}:${path}`);
      if (mine === null) continue;
      await write(join(fork.folder, overrideOf(path)), mine);
      const kits = await fork.git.blob(`${fork.kit}:${path}`);
      if (kits === null) await rm(join(fork.folder, path), { force: true });
      else await write(join(fork.folder, path), kits);
      const before = await fork.git.blob(`${fork.base}:${path}`);
      if (kits !== null && (before === null || !kits.equals(before)))
        todos.push({
          name: 'own-templates',
          place: overrideOf(path),
          what: `the kit has changed ${path} since you copied it: take over what you want of it (git diff ${fork.base.slice(0, 12)} ${fork.kit.slice(0, 12)} -- ${path})`,
        });
    }
    return todos;
  },
};

async function isDone({ git, folder, before, kit }: Fork, path: string): Promise<boolean> {
  const [now, mine] = await Promise.all(
    [path, overrideOf(path)].map((one) => readFile(join(folder, one)).catch(() => null)),
  );
  const [kits, wanted] = [await git.blob(`${kit}:${path}`), await git.blob(`${before}:${path}`)];
  const isKits = kits === null ? now === null : now?.equals(kits);
  return isKits === true && wanted !== null && mine?.equals(wanted) === true;
}

async function write(path: string, bytes: Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
}
