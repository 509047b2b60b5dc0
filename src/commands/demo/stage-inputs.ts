import { existsSync } from 'node:fs';
import { constants, copyFile, link, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { KitError } from '../../contract/index.ts';
import { rasterExtensions, vectorExtensions } from '../../raster/index.ts';
import { isMetadataName } from '../../sandbox/stac/import/scene-metadata.ts';

/** Extensions of the files that a step of several inputs may take. */
const allExtensions = new Set([...rasterExtensions, ...vectorExtensions]);

/** Brings one input of several into `folder`. Throws `KitError` for what is not there or neither raster nor features. */
export async function stageNamed(name: string, input: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const path of await listFiles(input, allExtensions, `--input ${name}=${input}`)) await bring(path, folder);
}

/** Brings the user's rasters into `folder`, with what tells of their scene, by hard link where the disk allows it, and counts the rasters. Throws `KitError` for what is not there or no raster. */
export async function stageInputs(inputs: readonly string[], folder: string): Promise<number> {
  await mkdir(folder, { recursive: true });
  const staged = new Set<string>();
  for (const input of inputs) {
    for (const path of await listFiles(input, rasterExtensions, `--input ${input}`)) {
      const name = basename(path);
      if (staged.has(name))
        throw new KitError('bad_input', `--input: two rasters have the name ${name}; rename one of them`);
      staged.add(name);
      await bring(path, folder);
    }
    for (const path of await findMetadata(input))
      if (!existsSync(join(folder, basename(path)))) await bring(path, folder);
  }
  return staged.size;
}

async function bring(path: string, folder: string): Promise<void> {
  const to = join(folder, basename(path));
  // A hard link to a symbolic link copies the symbolic link, whose target is missing here.
  await link(await realpath(path), to).catch(() => copyFile(path, to, constants.COPYFILE_FICLONE));
}

/** Metadata files of a folder, with the time and the satellite of its scene. */
async function findMetadata(input: string): Promise<string[]> {
  if ((await stat(input)).isFile()) return [];
  return (await readdir(input)).filter(isMetadataName).map((name) => join(input, name));
}

async function listFiles(input: string, extensions: ReadonlySet<string>, given: string): Promise<string[]> {
  const kind = await stat(input).catch(() => null);
  if (!kind) throw new KitError('bad_input', `${given}: there is no such file or folder`);
  const fits = (name: string) => extensions.has(extname(name).toLowerCase());
  const what = extensions === rasterExtensions ? 'raster' : 'raster or features';
  if (kind.isFile() && !fits(input))
    throw new KitError(
      'bad_input',
      `${given}: by its name the file is not a ${what}; the demo reads files that end in ${[...extensions].join(' ')}`,
    );
  if (kind.isFile()) return [input];
  const names = (await readdir(input)).filter(fits).sort();
  if (names.length === 0)
    throw new KitError('bad_input', `${given}: the folder holds no ${what}; looked for ${[...extensions].join(' ')}`);
  return names.map((name) => join(input, name));
}
