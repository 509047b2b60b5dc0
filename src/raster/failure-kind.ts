import type { FailureKind } from './child/protocol.ts';

/** Codes of the system's errors that waiting, or somebody who makes room, can mend. */
const ofTheWorld = new Set([
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

/** JavaScript's own errors: whoever wrote the code did not mean them. */
const ofTheCode = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError];

/** True for an error of the system, or of a database in a file, that is about the machine and not about the request. */
export function isOfTheWorld(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && (ofTheWorld.has(code) || ofSqlite.test(code));
}

/** A mistake in code, known as one where its error alone would not tell. */
export class Defect extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'Defect';
    this.stack = cause.stack ?? cause.message;
  }
}

/** Classifies an error that nobody gave a meaning. Readers of files, GDAL among them, throw plain errors for a damaged file. */
export function kindOfPlainError(error: unknown): FailureKind {
  if (isOfTheWorld(error)) return 'world';
  return !(error instanceof Error) ||
    ofTheCode.some((one) => error instanceof one) ||
    error.name === 'AssertionError' ||
    error instanceof Defect
    ? 'defect'
    : 'user';
}
