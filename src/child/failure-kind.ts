import { codeOf, isTransient } from '../files/index.ts';
import type { FailureKind } from './protocol.ts';

/** JavaScript's own errors: whoever wrote the code did not mean them. */
const ofTheCode = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError];

/** Node's error codes for a module or library that cannot be loaded. No input causes them. */
const loadingCodes: ReadonlySet<string | null> = new Set([
  'MODULE_NOT_FOUND',
  'ERR_MODULE_NOT_FOUND',
  'ERR_DLOPEN_FAILED',
]);

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
  if (isTransient(error)) return 'transient';
  return !(error instanceof Error) ||
    ofTheCode.some((errorClass) => error instanceof errorClass) ||
    error.name === 'AssertionError' ||
    loadingCodes.has(codeOf(error)) ||
    error instanceof Defect
    ? 'bug'
    : 'input';
}
