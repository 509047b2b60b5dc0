import { KitError } from '../contract/index.ts';
import { messageOf } from '../files/index.ts';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { readPermissions } from '../sandbox/config.ts';
import type { Permission } from '../sandbox/identity/permissions.ts';
import { wrongArguments } from './arguments.ts';

/** Permissions for a key of the app: `external_app`, and those of files and inference if a step runs a model of the platform. */
export function permissionsOf(definition: Pick<AppDefinition, 'steps'> | null): readonly Permission[] {
  const runsModels = definition?.steps.some(({ platformModels }) => platformModels !== undefined) ?? false;
  return runsModels ? ['external_app', 'files_upload', 'inference'] : ['external_app'];
}

/** Reads `--permissions`. Null if it is not given. Throws `KitError` with the usage of the command. */
export function permissionsGiven(text: string | undefined, usage: string): readonly Permission[] | null {
  try {
    return readPermissions('--permissions', text);
  } catch (error) {
    if (error instanceof KitError) throw wrongArguments(messageOf(error), usage);
    throw error;
  }
}
