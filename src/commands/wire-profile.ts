import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { assumedProfile, KitError, wireProfile, type WireChanges, type WireProfile } from '../contract/index.ts';
import { codeOf, importDefault, messageOf } from '../files/index.ts';

/** The wire profile in a file: data as JSON, or the default export of a module, which may be an app. Throws `KitError`. */
export async function readWireProfile(file: string, folder: string): Promise<WireProfile> {
  const path = resolve(folder, file);
  if (path.endsWith('.json')) return wireProfile(await readJson(path));
  const profile = await importDefault<WireProfile | AppDefinition | undefined>(pathToFileURL(path).href).catch(
    (cause: unknown) => {
      throw new KitError('bad_arguments', `--profile ${file} cannot be loaded: ${messageOf(cause)}`, { cause });
    },
  );
  if (profile && 'decodeError' in profile) return profile;
  if (profile && 'steps' in profile) return profile.profile ?? assumedProfile;
  throw new KitError(
    'bad_arguments',
    `--profile ${file} must export a wire profile: export default wireProfile({...})`,
  );
}

async function readJson(path: string): Promise<WireChanges> {
  try {
    // `wireProfile` checks it.
    return JSON.parse(await readFile(path, 'utf8')) as WireChanges;
  } catch (cause) {
    const message =
      codeOf(cause) === 'ENOENT' ? 'there is no such file' : `cannot be read as JSON: ${messageOf(cause)}`;
    throw new KitError('bad_arguments', `--profile ${path}: ${message}`, {
      cause,
    });
  }
}
