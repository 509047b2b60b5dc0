import * as z from 'zod';
import {
  KitError,
  platformErrors,
  validationDetails,
  type ErrorCode,
  type ValidationDetail,
} from '../../contract/index.ts';

interface ErrorMore {
  /** Default: that of the table. */
  readonly status?: number;
  /** Default: that of the table. */
  readonly message?: string;
  readonly details?: readonly ValidationDetail[];
  readonly cause?: unknown;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** An answer of the platform that is an error. Status and message are those of the contract's table, unless the caller names others. */
export class SandboxError extends KitError {
  declare readonly code: ErrorCode;
  readonly details: readonly ValidationDetail[] | undefined;

  constructor(code: ErrorCode, { status, message, details, cause, data }: ErrorMore = {}) {
    const row = platformErrors[code];
    super(code, message ?? row.message, { status: status ?? row.status, cause, data });
    this.details = details;
  }
}

/** 415 with the content types that the call takes. */
export function wrongMediaType(types: readonly string[]): SandboxError {
  return new SandboxError('unsupported_media_type', {
    details: [{ path: 'content-type', message: `must be ${types.join(' or ')}` }],
  });
}

/** 400 with the places that are missing, malformed or invalid. */
export function invalid(details: readonly ValidationDetail[]): SandboxError {
  return new SandboxError('validation_failed', { details });
}

/** Type of the error for a form that is not UTF-8. The body parser has other types. */
export const notUtf8 = 'entity.not.utf8';

/** Parses a request's values; an optional one that is null is absent (contract, "bodies"). Throws `invalid`. */
export function parseValues<Schema extends z.ZodType>(schema: Schema, values: unknown): z.output<Schema> {
  const read = schema.safeParse(withoutNulls(schema, values ?? {}), { error: inWords });
  if (read.success) return read.data;
  throw invalid(validationDetails(read.error));
}

const inWords: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'is required';
  return issue.code === 'invalid_value' ? mustBeOneOf(issue.values) : undefined;
};

const mustBeOneOf = (values: readonly unknown[]) =>
  values.length === 1 ? `must be ${String(values[0])}` : `must be one of ${values.map(String).join(', ')}`;

/** Leaves out what is null and may be missing, as deep as the schema names fields; what it leaves open stays as it is. */
function withoutNulls(schema: unknown, value: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return withoutNulls(schema.def.innerType, value);
  if (schema instanceof z.ZodPipe) return withoutNulls(schema.def.in, value);
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((element) => withoutNulls(schema.element, element));
  // Uses the first alternative that accepts the value without its nulls.
  if (schema instanceof z.ZodUnion) {
    const cleaned = schema.options.map((option) => ({ option, values: withoutNulls(option, value) }));
    return cleaned.find(({ option, values }) => (option as z.ZodType).safeParse(values).success)?.values ?? value;
  }
  if (!(schema instanceof z.ZodObject) || value === null || typeof value !== 'object' || Array.isArray(value))
    return value;
  const shape: Readonly<Record<string, z.ZodType>> = schema.shape;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
      const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
      if (!field) return [[name, member]];
      return member === null && field.safeParse(undefined).success ? [] : [[name, withoutNulls(field, member)]];
    }),
  );
}
