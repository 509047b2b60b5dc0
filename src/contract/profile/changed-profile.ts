import { fillPath, type Call, type WireBody, type WireRequest } from '../wire.ts';
import { KitError } from '../kit-error.ts';
import { assumedForm, changedForm, matchPath, setAt, valueAt, type WireForm } from './wire-form.ts';
import { wireCallNames, wireCalls, type WireCallName } from './wire-calls.ts';
import type { CallChanges } from './call-changes.ts';
import { readWireChanges, type WireChanges } from './wire-changes.ts';
import { assumedProfile, type WireProfile } from './wire-profile.ts';

/**
 * The profile of a platform whose wire differs from the assumed one by `changes`, which are data. What data cannot say, a
 * profile says in code: `{ ...wireProfile({...}), decodeError }`; the sandbox then speaks what the data says.
 * Throws `WireChangesError`.
 */
export function wireProfile(given: WireChanges): WireProfile {
  const changes = readWireChanges(given);
  const { apiKey, pages, uploadsCollection, errors = {}, calls = {} } = changes;
  const changed = wireCallNames.map((name): [string, unknown] => {
    const call: Call<never, unknown> = assumedProfile.calls[name];
    return [name, calls[name] ? changeCall(name, call, calls[name]) : call];
  });
  return {
    name: changes.name,
    authenticate: apiKey
      ? (key) => ({ [apiKey.header]: `${apiKey.prefix ?? ''}${key}` })
      : (key) => assumedProfile.authenticate(key),
    // Each call keeps the types of the assumed one: what is changed is how it stands on the wire.
    calls: Object.fromEntries(changed) as unknown as WireProfile['calls'],
    decodeError: (status, body) => assumedProfile.decodeError(status, assumedError(body, errors)),
    launchTokenField: changes.launchTokenField ?? assumedProfile.launchTokenField,
    pages: {
      approvals: pages?.approvals === undefined ? assumedProfile.pages.approvals : pages.approvals,
      item: itemPage(pages?.item),
    },
    limits: { ...assumedProfile.limits, ...defined(changes.limits) },
    severalOutputs: changes.severalOutputs ?? assumedProfile.severalOutputs,
    refusedFields: changes.refusedFields ?? assumedProfile.refusedFields,
    uploadsCollection:
      uploadsCollection === undefined
        ? (userId) => assumedProfile.uploadsCollection(userId)
        : (userId) => uploadsCollection.replaceAll(':userId', () => userId),
    changes,
  };
}

/** Removes undefined properties, because a spread would copy them over the properties of another object. */
function defined<T extends object>(object: T | undefined): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  // `Object.fromEntries` forgets the names.
  return Object.fromEntries(Object.entries(object ?? {}).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>;
  };
}

function itemPage(template: string | null | undefined): WireProfile['pages']['item'] {
  if (template === undefined) return assumedProfile.pages.item;
  if (template === null) return null;
  return (collectionId, itemId) => fillPath(template, { collectionId, itemId });
}

function changeCall(name: WireCallName, call: Call<never, unknown>, changes: CallChanges): Call<never, unknown> {
  const [assumed, wanted] = [assumedForm(name), changedForm(name, changes)];
  return {
    endpoint: call.endpoint,
    encode: (input) => encodeAs(wanted, assumed, call.encode(input)),
    decode: (body) => call.decode(assumedAnswer(name, body, changes)),
  };
}

/** A request of the assumed wire as it stands on the other. */
function encodeAs(wanted: WireForm, assumed: WireForm, request: WireRequest): WireRequest {
  const inPath = matchPath(assumed.path, request.path);
  // A path of no call, such as the root of the catalog, stays unchanged.
  if (inPath === null) return request;
  const values: Record<string, unknown> = { ...inPath, ...request.query, ...fieldsOfBody(request.body) };
  for (const { field, place, name } of assumed.fields)
    if (place === 'header' && request.headers?.[name] !== undefined) values[field] = request.headers[name];

  const carrying = new Set(assumed.fields.filter(({ place }) => place === 'header').map(({ name }) => name));
  const headers = Object.fromEntries(Object.entries(request.headers ?? {}).filter(([name]) => !carrying.has(name)));
  const query: Record<string, string> = {};
  const body: Record<string, unknown> = {};
  const path: Record<string, string> = {};
  for (const { field, place, name } of wanted.fields) {
    const value = values[field];
    if (value === undefined) continue;
    if (place === 'header' && !headerText.test(asText(value))) throw new HeaderValueError(field);
    if (place === 'body') setAt(body, name, value);
    else (place === 'path' ? path : place === 'query' ? query : headers)[name] = asText(value);
  }
  return {
    method: wanted.method,
    path: fillPath(wanted.path, path),
    query,
    headers,
    body: bodyOf(wanted, request.body, body),
  };
}

/** Characters that a header can carry (RFC 9110, 5.5). Node drops the others. */
const headerText = /^(?![ \t])[\t\x20-\x7e\x80-\xff]*(?<![ \t])$/;

/** A value that a header cannot carry. The message does not contain the value, because it may be a token. */
class HeaderValueError extends KitError {
  constructor(field: string) {
    super(
      'unsafe_header_value',
      `${field} cannot stand in a header: it holds characters beyond Latin-1 or of control, or a space at an end`,
      {
        status: 400,
      },
    );
  }
}

function fieldsOfBody(body: WireBody | undefined): Record<string, unknown> {
  // Every body in JSON that the contract sends is an object.
  if (body?.kind === 'json') return body.value as Record<string, unknown>;
  return body?.kind === 'multipart' || body?.kind === 'form' ? body.fields : {};
}

function bodyOf(
  { isRaw }: WireForm,
  body: WireBody | undefined,
  fields: Record<string, unknown>,
): WireBody | undefined {
  if (body?.kind === 'multipart') {
    if (isRaw) return { kind: 'raw', mediaType: 'application/octet-stream', content: body.file.content };
    // Fields of a form are texts; here and below.
    return { ...body, fields: fields as Record<string, string> };
  }
  if (body?.kind === 'form') return { kind: 'form', fields: fields as Record<string, string> };
  return Object.keys(fields).length > 0 || body?.kind === 'json' ? { kind: 'json', value: fields } : body;
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** An answer of the other wire as the contract's decoder reads it. What is not renamed stays where it is. */
function assumedAnswer(name: WireCallName, body: unknown, { response }: CallChanges): unknown {
  if (!response || body === null || typeof body !== 'object') return body;
  const answer: Record<string, unknown> = { ...body };
  for (const [field, change] of Object.entries(response)) {
    const { name: path = field, values = {} } = typeof change === 'string' ? { name: change } : change;
    const value = valueAt(body, path);
    const [known] = Object.entries(values).find(([, word]) => word === value) ?? [];
    answer[field] = known ?? value;
  }
  return wireCalls[name].response[0] === 'text' ? answer['text'] : answer;
}

function assumedError(body: unknown, { fields = {}, codes = {} }: NonNullable<WireChanges['errors']>): unknown {
  if (body === null || typeof body !== 'object') return body;
  const error: Record<string, unknown> = { ...body };
  for (const [field, path] of Object.entries(fields)) error[field] = valueAt(body, path);
  const [known] = Object.entries(codes).find(([, word]) => word === error['code']) ?? [];
  return { ...error, code: known ?? error['code'] };
}
