import * as z from 'zod';
import { KitError, validationDetails, type ErrorCode, type ValidationDetail } from '../../contract/index.ts';

/** An answer of the platform that is an error, by the contract's table of conditions. */
export class SandboxError extends KitError {
  declare readonly code: ErrorCode;
  readonly details: readonly ValidationDetail[] | undefined;

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    more: { details?: readonly ValidationDetail[]; cause?: unknown; data?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(code, message, { status, cause: more.cause, data: more.data });
    this.details = more.details;
  }
}

/** 400 with the places that are missing, malformed or invalid. */
export function invalid(details: readonly ValidationDetail[]): SandboxError {
  return new SandboxError(400, 'validation_failed', 'Bad Request', { details });
}

/** Parses a request's values. Throws `invalid`. */
export function parseValues<Schema extends z.ZodType>(schema: Schema, values: unknown): z.output<Schema> {
  const read = schema.safeParse(values ?? {}, { error: missingAsRequired });
  if (read.success) return read.data;
  throw invalid(validationDetails(read.error));
}

const missingAsRequired: z.core.$ZodErrorMap = (issue) =>
  issue.code === 'invalid_type' && issue.input === undefined ? 'is required' : undefined;
