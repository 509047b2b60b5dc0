/** Codes of the system's errors that waiting, or somebody who makes room, can mend. */
const transientCodes = new Set([
  ...['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EBUSY', 'ESTALE'],
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOTFOUND',
    'EAI_AGAIN',
  ],
]);

const ofSqlite = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|PROTOCOL|NOMEM)/;

/** The code of an error, as the system's and the database's errors have one; null if it has none. */
export function codeOf(error: unknown): string | null {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
  return typeof code === 'string' ? code : null;
}

/** True for an error of the system, or of a database in a file, that is about the machine and not about the request. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  return code !== null && (transientCodes.has(code) || ofSqlite.test(code));
}

/** Message of a caught error. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
