import { constants, copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { basename, join, resolve, sep } from 'node:path';
import type { FetchedFile, PlatformInput } from '../../app/processing/platform-input.ts';
import type { Provenance } from '../../app/processing/provenance.ts';
import { KitError } from '../../contract/index.ts';
import { digestFile } from '../digest-file.ts';

/** An input that is not what the run has read. */
export class OtherInputError extends KitError {
  constructor(message: string) {
    super('other_input', message);
  }
}

/**
 * Puts the files that a run has read where a step host finds them again, found among `paths` (files, folders) by their digests.
 * Throws `OtherInputError` for each that is not there, or has other bytes.
 */
export async function bringInputs(
  { input, inputs }: Pick<Provenance, 'input' | 'inputs'>,
  paths: readonly string[],
  folder: string,
) {
  const given: { path: string; sha256: string }[] = [];
  for (const path of (await Promise.all(paths.map(listFiles))).flat())
    given.push({ path, sha256: await digestFile(path) });
  const brought = new Map<string, FetchedFile[]>();
  for (const { name, files } of inputs) {
    const source = input.type === 'named' ? input.inputs[name] : input;
    // A local input is found by its path below the app's folder of inputs.
    const localFolder = join(folder, 'inputs');
    const place = source?.type === 'local' ? resolve(localFolder, source.path) : join(folder, 'fetched', name);
    if (!place.startsWith(`${folder}${sep}`) || (source?.type === 'local' && !place.startsWith(`${localFolder}${sep}`)))
      throw new OtherInputError(`the input ${name} lies at ${JSON.stringify(source)}, which is no path below a folder`);
    const isOneFile = source?.type === 'local' && files.length === 1 && basename(source.path) === files[0]?.fileName;
    const to = isOneFile ? join(place, '..') : place;
    await mkdir(to, { recursive: true });
    const here: FetchedFile[] = [];
    for (const [i, { fileName, sha256, observedAt = null, bands = [] }] of files.entries()) {
      const found = given.find((one) => one.sha256 === sha256);
      if (!found) throw otherInput(name, fileName, sha256, given, inputs.flatMap((one) => one.files).length === 1);
      // Fetched files of two items may have the same name.
      const into = source?.type === 'local' ? to : join(to, String(i));
      await mkdir(into, { recursive: true });
      await copyFile(found.path, join(into, fileName), constants.COPYFILE_FICLONE);
      here.push({ path: join(into, fileName), ofItem: { observedAt, bands } });
    }
    brought.set(name, here);
  }
  const platformInput: PlatformInput = {
    check: () => Promise.reject(new OtherInputError('nothing is asked of the platform')),
    fetch: (_items, into) => Promise.resolve(brought.get(basename(into)) ?? []),
  };
  return { inputDir: join(folder, 'inputs'), platformInput };
}

function otherInput(
  name: string,
  fileName: string,
  sha256: string,
  given: readonly { path: string; sha256: string }[],
  isOnly: boolean,
) {
  const alike =
    given.find(({ path }) => basename(path) === fileName) ?? (isOnly && given.length === 1 ? given[0] : undefined);
  return new OtherInputError(
    alike
      ? `the input ${name} was ${fileName} with SHA-256 ${sha256}, and ${alike.path} has ${alike.sha256}: it is another file`
      : `the input ${name} was ${fileName} with SHA-256 ${sha256}, and none of the files given has that`,
  );
}

async function listFiles(path: string): Promise<string[]> {
  const kind = await stat(path).catch(() => null);
  if (!kind) throw new KitError('bad_arguments', `--input ${path}: there is no such file or folder`);
  if (kind.isFile()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(path, entry.name));
}
