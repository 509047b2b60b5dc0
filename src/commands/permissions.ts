import type { Permission } from '../contract/index.ts';
import { KitError } from '../contract/kit-error.ts';
import { messageOf } from '../files/index.ts';
import { readPermissions } from '../sandbox/config.ts';
import { wrongArguments } from './arguments.ts';

/** Reads `--permissions`, the permissions of the app's key. Default: `external_app`. Throws `KitError` with the usage of the command. */
export function appPermissions(text: string | undefined, usage: string): readonly Permission[] {
  try {
    return readPermissions('--permissions', text) ?? ['external_app'];
  } catch (error) {
    if (error instanceof KitError) throw wrongArguments(messageOf(error), usage);
    throw error;
  }
}
