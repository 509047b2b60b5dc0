import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { KitError } from '../../contract/index.ts';
import { importDefault } from '../../files/index.ts';
import type { AppDefinition } from './app-definition.ts';
import { checkDefinition } from './check-definition.ts';

/** The app that a module exports as its default, checked. Throws `KitError` where there is none, and `DefinitionError`. */
export async function loadApp(module: URL): Promise<AppDefinition> {
  const path = fileURLToPath(module);
  if (!existsSync(module)) throw new KitError('bad_app_definition', `there is no app at ${path}`);
  const definition = await importDefault<AppDefinition | undefined>(module.href);
  if (definition === undefined || typeof definition !== 'object')
    throw new KitError('bad_app_definition', `${path} must export its app: export default defineApp({...})`);
  checkDefinition(definition);
  return definition;
}
