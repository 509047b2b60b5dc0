import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Fork, Migration, Todo } from '../migration.ts';
import { convertStep } from './step-parameters.ts';

const kitSteps = ['ndvi', 'cog', 'hillshade'];
const steps = 'src/steps';
const home = 'src/my-app/steps';
const definition = 'src/my-app/app.ts';

/** Steps that a fork put beside the kit's, and its lines in the registry, move to its room. */
export const ownSteps: Migration = {
  name: 'own-steps',
  async detect({ git, folder, kit }) {
    // The kit's own, of whichever release, stay where they are.
    const kits = await git.lines('ls-tree', '--name-only', kit, `${steps}/`);
    const entries = await readdir(join(folder, steps), { withFileTypes: true });
    return entries
      .filter(
        (entry) =>
          entry.isDirectory() &&
          !kits.includes(`${steps}/${entry.name}`) &&
          existsSync(join(folder, steps, entry.name, 'index.ts')),
      )
      .map(({ name }) => `${steps}/${name}`);
  },
  writes: (found) => found.map((path) => `${home}/${path.slice(steps.length + 1)}`),
  async apply(fork, found) {
    const todos: Todo[] = [];
    const names = found.map((path) => path.slice(steps.length + 1));
    for (const name of names) {
      const target = join(fork.folder, home, name);
      await mkdir(join(fork.folder, home), { recursive: true });
      await cp(join(fork.folder, steps, name), target, { recursive: true });
      for (const file of await readdir(target, { recursive: true })) {
        if (!file.endsWith('.ts')) continue;
        const { text, problem } = convertStep(await readFile(join(target, file), 'utf8'));
        await writeFile(join(target, file), text);
        if (problem !== null) todos.push({ name: 'own-steps', place: `${home}/${name}/${file}`, what: problem });
      }
    }
    todos.push(...(await listSteps(fork, names)));
    // Last: an upgrade that is stopped before finds them here, and does it once more.
    for (const path of found) await rm(join(fork.folder, path), { recursive: true });
    return todos;
  },
};

/** As the fork's registry had them, in its order. */
async function listSteps(fork: Fork, moved: readonly string[]): Promise<Todo[]> {
  const registry = await fork.git.show(fork.before, `${steps}/registry.ts`);
  const [, listed = ''] = /export const steps[^=]*= \[([^\]]*)\]/.exec(registry ?? '') ?? [];
  const names = new Map(
    [...(registry ?? '').matchAll(/^import (\w+) from '\.\/([\w-]+)\/index\.ts';/gm)].map(
      ([, name = '', folder = '']) => [name, folder],
    ),
  );
  const wanted = listed
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  const path = join(fork.folder, definition);
  const text = await readFile(path, 'utf8');
  const isKnown = wanted.length > 0 && wanted.every((name) => names.has(name));
  const list = /^( *steps: )\[([^\]]*)\],$/m;
  if (!isKnown || !list.test(text))
    return [
      {
        name: 'own-steps',
        place: definition,
        what: `list your steps here: ${moved.join(', ')} (they lie in ${home} now)`,
      },
    ];
  const mine = wanted.filter((name) => !kitSteps.includes(names.get(name)!));
  const imports = mine
    .filter((name) => !text.includes(`/steps/${names.get(name)}/index.ts'`))
    .map((name) => `import ${name} from './steps/${names.get(name)}/index.ts';\n`);
  await writeFile(
    path,
    text
      .replace(
        list,
        (_, before: string) =>
          `${before}[${wanted.map((name) => (kitSteps.includes(names.get(name)!) ? names.get(name)! : name)).join(', ')}],`,
      )
      .replace(/(?<=\n)\n/, () => `${imports.join('')}\n`),
  );
  return [];
}
