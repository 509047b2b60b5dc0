import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadApp } from '../app/definition/load-app.ts';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { KitError } from '../contract/index.ts';

const places = ['src/my-app/app.ts', 'src/my-app/app.js', 'my-app/app.ts', 'my-app/app.js'];

/**
 * The app that a command works for: `MY_APP`, a module, or the room of the folder that the command was called in, or else
 * the kit's own. Throws `KitError` where `MY_APP` names none, and `DefinitionError`.
 */
export async function loadMyApp(env: NodeJS.ProcessEnv = process.env, folder = process.cwd()): Promise<AppDefinition> {
  return loadApp(myAppModule(env, folder));
}

/** The module that `loadMyApp` loads. */
export function myAppModule(env: NodeJS.ProcessEnv, folder: string): URL {
  if (env['MY_APP']) {
    const path = resolve(folder, env['MY_APP']);
    if (!existsSync(path)) throw new KitError('bad_arguments', `MY_APP=${env['MY_APP']}: there is no module ${path}`);
    return pathToFileURL(path);
  }
  const found = places.map((place) => join(folder, place)).find((path) => existsSync(path));
  return found === undefined ? new URL('../my-app/app.ts', import.meta.url) : pathToFileURL(found);
}
