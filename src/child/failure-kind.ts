import { isTransient } from '../files/index.ts';
import type { FailureKind } from './protocol.ts';

/** JavaScript's own errors: whoever wrote the code did not mean them. */
const ofTheCode = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError];

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
    error instanceof Defect
    ? 'bug'
    : 'input';
}
