import { KitError } from '../contract/kit-error.ts';
import { withoutFolders } from '../files/index.ts';
import { kindOfPlainError } from './failure-kind.ts';
import type { FromChild } from './protocol.ts';

const maxCharacters = 8_000;

/** A job's error as its host is told: whose it is, and what is for the user. */
export function describedError(error: unknown): Omit<Extract<FromChild, { type: 'failed' }>, 'type'> {
  const stack = error instanceof Error ? (error.stack ?? error.message).slice(0, maxCharacters) : null;
  if (error instanceof KitError)
    return {
      kind: error.status < 500 ? 'input' : 'bug',
      code: error.code,
      message: error.message.slice(0, maxCharacters),
      stack,
    };
  const message = error instanceof Error ? error.message || error.name : String(error);
  return {
    kind: kindOfPlainError(error),
    code: 'job_failed',
    message: withoutFolders(message).slice(0, maxCharacters),
    stack,
  };
}
