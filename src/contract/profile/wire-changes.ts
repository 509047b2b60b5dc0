import * as z from 'zod';
import { didYouMean } from '../did-you-mean.ts';
import { interfaceCalls } from '../calls.ts';
import { KitError } from '../kit-error.ts';
import { errorCodes } from '../error-codes.ts';
import { callChanges, wireName, type CallChanges } from './call-changes.ts';
import { completionFields } from '../files/completion-fields.ts';
import { wireCallNames, wireCalls, type AssumedCall, type WireCallName } from './wire-calls.ts';
import { changedForm, pathFieldsOf, type WireField } from './wire-form.ts';

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
const positive = z.int().min(1);
const errorFields = ['error', 'code', 'requestId', 'details', 'expected', 'received'] as const;
const hasFile = (name: WireCallName) => interfaceCalls[name]?.fileField !== undefined;
/** Calls that are answered when the platform has assembled a file. To repeat them changes nothing. */
const completions: readonly string[] = wireCallNames.filter((name) => interfaceCalls[name]?.isLong && !hasFile(name));
/** True for a call that is answered when the platform has assembled a file. */
export const isCompletion = (name: WireCallName): boolean => completions.includes(name);

const limits = z
  .strictObject({
    operationWindowMs: positive,
    pollIntervalMs: z.strictObject({ min: positive, max: positive }).refine(({ min, max }) => min <= max),
    tokenLifetimeMs: positive,
    tokenLifetimeMaxMs: positive,
    tokenRenewalGraceMs: z.int().min(0),
    chunkBytes: positive,
    maxPartNumber: positive,
    firstPartNumber: z.int().min(0).max(1),
  })
  .partial();

/** Schema of a wire profile as data. */
export const wireChanges = z.strictObject({
  /** For editors. */
  $schema: z.string().optional(),
  name: z.string().min(1).max(100),
  apiKey: z.strictObject({ header: z.string().regex(headerName), prefix: z.string().max(100).default('') }).optional(),
  launchTokenField: wireName.optional(),
  pages: z
    .strictObject({
      approvals: z.string().nullable().optional(),
      item: z
        .string()
        .refine((path) => /:collectionId\b/.test(path) && /:itemId\b/.test(path), 'must hold :collectionId and :itemId')
        .nullable()
        .optional(),
      request: z
        .string()
        .refine((path) => /:requestId\b/.test(path), 'must hold :requestId')
        .nullable()
        .optional(),
    })
    .optional(),
  severalOutputs: z.enum(['uploads', 'zip'], 'must be uploads or zip').optional(),
  refusedFields: z.array(z.enum(completionFields, `must be one of ${completionFields.join(', ')}`)).optional(),
  uploadsCollection: z.string().includes(':userId', 'must hold :userId').optional(),
  limits: limits.optional(),
  /** The field of an item by which it is found. Default: `id`. */
  itemId: z.enum(['id', 'title'], 'must be id or title').optional(),
  errors: z
    .strictObject({
      fields: z.partialRecord(z.enum(errorFields), wireName).optional(),
      codes: z.partialRecord(z.enum(errorCodes), z.string()).optional(),
      /** Our code for a status, where the platform has no word for it. */
      statuses: z
        .record(z.string().regex(/^[45]\d\d$/, 'must be a status of 400 to 599'), z.enum(errorCodes))
        .optional(),
    })
    .optional(),
  calls: z.partialRecord(z.enum(wireCallNames as readonly [WireCallName, ...WireCallName[]]), callChanges).optional(),
});

/**
 * Differences between a platform's wire and the one that the contract assumes. Plain data: it may stand in a JSON file, the app's
 * client is made of it (`wireProfile`), and the sandbox can speak it.
 */
export type WireChanges = z.input<typeof wireChanges>;

/** Changes that no platform could have. Names each place and its rule. */
export class WireChangesError extends KitError {
  constructor(problems: readonly string[]) {
    super(
      'bad_wire_profile',
      `the wire profile cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
    );
  }
}

/** Checks what may have come from a file. Throws `WireChangesError`. */
export function readWireChanges(value: unknown): WireChanges {
  const read = wireChanges.safeParse(value);
  if (!read.success)
    throw new WireChangesError(
      read.error.issues.flatMap((issue) =>
        issue.code === 'unrecognized_keys'
          ? issue.keys.map((key) => unknownKey(issue.path, key))
          : [`${issue.path.join('.') || 'profile'}: ${formOf(issue) ?? issue.message}`],
      ),
    );
  const problems = Object.entries(read.data.calls ?? {}).flatMap(([name, changes]) =>
    // The schema lets no other names through.
    problemsOf(name as WireCallName, changes).map((problem) => `calls.${name}.${problem}`),
  );
  if (problems.length > 0) throw new WireChangesError(problems);
  return read.data;
}

const formOf = ({ code, path }: { readonly code?: string | undefined; readonly path: readonly PropertyKey[] }) =>
  code === 'invalid_union' && path[0] === 'calls' ? fieldForms[String(path[2])] : undefined;

/** Names that a profile has at a place; none where they differ from call to call. */
const namesAt: Readonly<Record<string, readonly string[]>> = {
  '': Object.keys(wireChanges.shape).filter((name) => name !== '$schema'),
  calls: wireCallNames,
  pages: ['approvals', 'item', 'request'],
  limits: Object.keys(limits.shape),
  apiKey: ['header', 'prefix'],
  errors: ['fields', 'codes', 'statuses'],
  'errors.fields': errorFields,
};

/** Names below `calls`, whichever call it is. */
function namesInCall(path: readonly PropertyKey[]): readonly string[] {
  if (path.length === 2) return Object.keys(callChanges.shape);
  if (path.length !== 4) return [];
  return path[2] === 'request' ? ['in', 'name'] : path[2] === 'response' ? ['name', 'values', 'join', 'as'] : [];
}

/** Forms of a field, for a value that has none of them. */
const fieldForms: Readonly<Record<string, string>> = {
  request: 'must be the name of a field, or {in, name}',
  response: 'must be the name of a field, or {name, values, join, as}',
};

function unknownKey(path: readonly PropertyKey[], key: string): string {
  const known = namesAt[path.join('.')] ?? (path[0] === 'calls' ? namesInCall(path) : []);
  const place = [...path, key].map(String).join('.').slice(0, 200);
  return known.length === 0
    ? `${place} is not known here`
    : `${place} is not known; known are ${known.join(', ')}${didYouMean(key, known)}`;
}

function problemsOf(name: WireCallName, changes: CallChanges): string[] {
  const { path, request = {}, response = {} } = changes;
  const call: AssumedCall = wireCalls[name];
  const form = changedForm(name, changes);
  const fields = Object.keys(call.request);
  const known = [...fields, ...call.extra];
  const unknown = (names: readonly string[], known: readonly string[], where: string) =>
    names
      .filter((name) => !known.includes(name))
      .map((name) => `${where}: there is no field ${name}; known are ${known.join(', ')}`);
  const inPath = pathFieldsOf(form.path);
  const fieldsWhere = (isSo: (field: WireField) => boolean) => form.fields.filter(isSo).map(({ field }) => field);
  const lost = fieldsWhere(({ field, place }) => place === 'path' && !inPath.includes(field));
  const intoBody = fieldsWhere(
    ({ field, place }) => place === 'body' && ['path', 'query'].includes(call.request[field] ?? ''),
  );
  const outOfBody = fieldsWhere(({ field, place }) => place !== 'body' && call.structured.includes(field));
  const inBodyOfGet = form.method === 'GET' ? fieldsWhere(({ place }) => place === 'body') : [];
  const nested = fieldsWhere(({ place, name: wireName }) => call.isForm && place === 'body' && wireName.includes('.'));
  const partial = (path ?? '').split('/').filter((segment) => segment.includes(':') && !/^:[A-Za-z]+$/.test(segment));
  return [
    ...unknown(Object.keys(request), known, 'request'),
    ...unknown(Object.keys(response), call.response, 'response'),
    ...unknown(inPath, known, 'path'),
    ...intoBody.map((name) => `request.${name}: stands in the address, and cannot go into the body`),
    ...outOfBody.map((name) => `request.${name}: is no plain value, and cannot leave the body`),
    ...inBodyOfGet.map((name) => `request.${name}: stands in the body, and a GET has none`),
    ...(form.method === 'GET' && form.isRaw ? ['body: a GET has none'] : []),
    ...(changes.unfinished !== undefined && !isCompletion(name)
      ? [`unfinished: only ${completions.join(' and ')} can be made again`]
      : []),
    ...(changes.file !== undefined && !hasFile(name) ? ['file: the request has none'] : []),
    ...nested.map((name) => `request.${name}: a form has no names with dots`),
    ...partial.map((segment) => `path: ${segment} must be a whole segment, such as /:token/`),
    ...lost.map((field) => `path: :${field} is missing, and request does not say where it goes instead`),
  ];
}
