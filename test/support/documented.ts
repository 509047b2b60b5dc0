import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot } from './folders.ts';

/** Last words of the control API's paths, from its routes. */
export async function endpoints(): Promise<string[]> {
  const routes = await readFile(join(projectRoot, 'src/sandbox/control/routes.ts'), 'utf8');
  return [...routes.matchAll(/\.route\(['`]\/([a-z]+)/g)].map(([, name]) => `/sandbox/${name}`);
}
