import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadApp } from '../app/definition/load-app.ts';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { KitError } from '../contract/index.ts';
import { isPackage } from '../files/index.ts';
import { callerFolder } from './arguments.ts';

const places = ['src/my-app/app.ts', 'src/my-app/app.js', 'my-app/app.ts', 'my-app/app.js'];
/** In a repository this lies in the fork itself; of a package it is the kit's own example. */
const beside = new URL('../my-app/app.ts', import.meta.url);

/**
 * The app that a command works for: `MY_APP`, a module; or the room of the fork whose command it is; or, where the kit is an
 * installed package, the room of the folder that the command was called in, or else the kit's own. Throws `KitError` where
 * `MY_APP` names none, and `DefinitionError`.
 */
export async function loadMyApp(env: NodeJS.ProcessEnv = process.env, folder = process.cwd()): Promise<AppDefinition> {
  return loadApp(myAppModule(env, folder));
}

function myAppModule(env: NodeJS.ProcessEnv, folder: string): URL {
  if (env['MY_APP']) {
    const path = resolve(callerFolder(), env['MY_APP']);
    if (!existsSync(path)) throw new KitError('bad_arguments', `MY_APP=${env['MY_APP']}: there is no module ${path}`);
    return pathToFileURL(path);
  }
  if (!isPackage) return beside;
  const found = places.map((place) => join(folder, place)).find((path) => existsSync(path));
  return found === undefined ? beside : pathToFileURL(found);
}
