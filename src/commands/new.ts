import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { KitError } from '../contract/index.ts';
import { codeOf, kitFolder, ownJson } from '../files/index.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { defineCommand } from './command.ts';

const usage = `usage: marketplace-app-kit new FOLDER [--kit SPEC]: a project of your own that depends on this kit

  --kit SPEC   Where npm finds the kit: a version, or the path of a tarball (default: this version)

It writes an app with an example step, its test, a README and a workflow. npm run demo and npm test set up the rest.`;

/** Packages that a project's tests need besides the kit and its sandbox, at the versions that the kit itself is tested with. */
const ownTools = ['@types/node', 'geotiff', 'onnxruntime-node', 'typescript', 'vitest'];
/** Folders of the app folder in the kit. */
const parts = ['src/my-app', 'templates/my-app', 'test/my-app'];
const imports: readonly (readonly [RegExp, string])[] = [
  [/'(?:\.\.\/)+index\.ts'/g, "'marketplace-app-kit'"],
  [/'(?:\.\.\/)+src\/testing\/index\.ts'/g, "'marketplace-app-kit/testing'"],
];

interface Manifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

export default defineCommand(import.meta, {
  usage,
  allowPositionals: true,
  options: { kit: { type: 'string' } },
  async run({ values, positionals }) {
    const [given] = positionals;
    if (given === undefined || positionals.length > 1)
      throw wrongArguments('new needs one argument: the folder of the project', usage);
    const folder = resolve(callerFolder(), given);
    const name = basename(folder);
    if (!/^[a-z0-9][a-z0-9._-]{0,213}$/.test(name))
      throw wrongArguments(`${name} cannot be the name of a package: use a-z, 0-9, ., _ and -`, usage);
    const there = await readdir(folder).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return [];
      throw new KitError('bad_arguments', `${folder} cannot be used (${codeOf(error)})`);
    });
    if (there.length > 0) throw new KitError('bad_arguments', `${folder} is not empty: new wrote nothing`);

    const kit = ownJson<Manifest>(await readFile(kitFolder('package.json'), 'utf8'));
    const manifest = {
      name,
      dependencies: { 'marketplace-app-kit': specOf(values.kit, folder) ?? `^${kit.version}` },
      devDependencies: sorted({ ...kit.peerDependencies, ...toolsOf(kit) }),
    };
    for (const file of await filesBelow(kitFolder('templates/starter'))) {
      const text = await readFile(join(kitFolder('templates/starter'), file), 'utf8');
      const filled =
        file === 'package.json'
          ? `${JSON.stringify({ ...ownJson<object>(text), ...manifest }, null, 2)}\n`
          : text.replaceAll('{{name}}', name);
      // npm leaves a .gitignore out of a package.
      await write(join(folder, file === 'gitignore' ? '.gitignore' : file), filled);
    }
    for (const part of parts) {
      for (const file of await filesBelow(kitFolder(part))) {
        const from = join(kitFolder(part), file);
        const to = join(folder, part, file);
        await mkdir(dirname(to), { recursive: true });
        if (!/\.ts$/.test(file)) await cp(from, to);
        else
          await write(
            to,
            imports.reduce((text, [pattern, by]) => text.replace(pattern, by), await readFile(from, 'utf8')),
          );
      }
    }
    console.log(
      `${relative(callerFolder(), folder) || '.'} is ready. Go on with\n\n    cd ${relative(callerFolder(), folder) || '.'}\n    npm run demo\n    npm test`,
    );
  },
});

/** A path is written as the project sees it, where it is one. */
function specOf(spec: string | undefined, folder: string): string | null {
  if (spec === undefined) return null;
  return /^[./]|\.tgz$/.test(spec) ? `file:${relative(folder, resolve(callerFolder(), spec))}` : spec;
}

function toolsOf({ devDependencies }: Manifest): Record<string, string | undefined> {
  return Object.fromEntries(ownTools.map((tool) => [tool, devDependencies[tool]]));
}

function sorted(versions: Readonly<Record<string, string | undefined>>): object {
  return Object.fromEntries(Object.entries(versions).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
