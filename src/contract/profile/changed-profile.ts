import { fillPath, NotFinishedError, type Call, type WireBody, type WireRequest } from '../wire.ts';
import { KitError } from '../kit-error.ts';
import { limits } from '../limits.ts';
import { assumedForm, changedForm, matchPath, setAt, valueAt, type WireForm } from './wire-form.ts';
import { wireCallNames, wireCalls, type AssumedCall, type WireCallName } from './wire-calls.ts';
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
  const { apiKey, pages, uploadsCollection, errors = {}, calls = {}, itemId } = changes;
  const first = changes.limits?.firstPartNumber ?? limits.firstPartNumber;
  const changed = wireCallNames.map((name): [string, unknown] => {
    const call: Call<never, unknown> = assumedProfile.calls[name];
    const isChanged = calls[name] !== undefined || itemId !== undefined || first !== limits.firstPartNumber;
    return [name, isChanged ? changeCall(name, call, calls[name] ?? {}, { first, itemId }) : call];
  });
  return {
    name: changes.name,
    authenticate: apiKey
      ? (key) => ({ [apiKey.header]: `${apiKey.prefix ?? ''}${key}` })
      : (key) => assumedProfile.authenticate(key),
    // Each call keeps the types of the assumed one: what is changed is how it stands on the wire.
    calls: Object.fromEntries(changed) as unknown as WireProfile['calls'],
    decodeError(status, body) {
      const error = assumedProfile.decodeError(status, assumedError(body, errors));
      return {
        ...error,
        code: error.code ?? errors.statuses?.[String(status)] ?? null,
        expectedPart: error.expectedPart === null ? null : error.expectedPart + 1 - first,
      };
    },
    launchTokenField: changes.launchTokenField ?? assumedProfile.launchTokenField,
    pages: {
      approvals: pages?.approvals === undefined ? assumedProfile.pages.approvals : pages.approvals,
      item: itemPage(pages?.item),
      request: requestPage(pages),
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

/** A platform whose pages the profile names has only these. */
function requestPage(pages: WireChanges['pages']): ((requestId: string) => string) | null {
  if (pages === undefined) return assumedProfile.pages.request ?? null;
  const { request: template } = pages;
  return template ? (requestId) => fillPath(template, { requestId }) : null;
}

interface OfAllCalls {
  /** Number of the first chunk on the wire. */
  readonly first: number;
  readonly itemId: WireChanges['itemId'];
}

function changeCall(
  name: WireCallName,
  call: Call<never, unknown>,
  changes: CallChanges,
  { first, itemId }: OfAllCalls,
): Call<never, unknown> {
  const [assumed, wanted] = [assumedForm(name), changedForm(name, changes)];
  const { extra }: AssumedCall = wireCalls[name];
  return {
    endpoint: call.endpoint,
    encode(input) {
      // They are members of the input, or of its member that is the body.
      const given: readonly unknown[] = [input, ...Object.values(input)];
      const extras = Object.fromEntries(
        extra.map((field) => [field, given.map((part) => valueAt(part, field)).find((value) => value !== undefined)]),
      );
      return encodeAs(wanted, assumed, call.encode(input), { extras, first });
    },
    decode(body, head) {
      if (head !== undefined && head.status === changes.unfinished) throw new NotFinishedError(head);
      const answer = assumedAnswer(name, body, changes);
      return call.decode(itemId === 'title' ? foundByTitle(answer) : answer, head);
    },
  };
}

/** An item, or a list of them, whose ids are its titles. */
function foundByTitle(answer: unknown): unknown {
  if (answer === null || typeof answer !== 'object') return answer;
  const { type, title, features }: { type?: unknown; title?: unknown; features?: unknown } = answer;
  if (type === 'Feature' && typeof title === 'string') return { ...answer, id: title };
  return Array.isArray(features) ? { ...answer, features: features.map(foundByTitle) } : answer;
}

/** A request of the assumed wire as it stands on the other. */
function encodeAs(
  wanted: WireForm,
  assumed: WireForm,
  request: WireRequest,
  { extras, first }: { readonly extras: Readonly<Record<string, unknown>>; readonly first: number },
): WireRequest {
  const inPath = matchPath(assumed.path, request.path);
  // A path of no call, such as the root of the catalog, stays unchanged.
  if (inPath === null) return request;
  const values: Record<string, unknown> = { ...inPath, ...request.query, ...fieldsOfBody(request.body), ...extras };
  if (values['partNumber'] !== undefined) values['partNumber'] = String(Number(values['partNumber']) + first - 1);
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
  const hasBody = wanted.method !== 'GET' && !wanted.isRaw;
  for (const [name, value] of Object.entries(wanted.constants))
    if (hasBody) setAt(body, name, value);
    else query[name] = asText(value);
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
  { isRaw, file }: WireForm,
  body: WireBody | undefined,
  fields: Record<string, unknown>,
): WireBody | undefined {
  if (body?.kind === 'multipart') {
    if (isRaw) return { kind: 'raw', mediaType: 'application/octet-stream', content: body.file.content };
    return { ...body, fields: textsOf(fields), file: { ...body.file, field: file ?? body.file.field } };
  }
  if (body?.kind === 'form') return { kind: 'form', fields: textsOf(fields) };
  return Object.keys(fields).length > 0 || body?.kind === 'json' ? { kind: 'json', value: fields } : body;
}

/** Fields of a form are texts. */
const textsOf = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, asText(value)]));

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** An answer of the other wire as the contract's decoder reads it. What is not renamed stays where it is. */
function assumedAnswer(name: WireCallName, body: unknown, { response }: CallChanges): unknown {
  if (!response || body === null || typeof body !== 'object') return body;
  const answer: Record<string, unknown> = { ...body };
  for (const [field, change] of Object.entries(response)) answer[field] = assumedValue(field, change, body);
  return wireCalls[name].response[0] === 'text' ? answer['text'] : answer;
}

type ResponseChange = NonNullable<CallChanges['response']>[string];

function assumedValue(field: string, change: ResponseChange, body: object): unknown {
  const { name: path = field, values = {}, join, as } = typeof change === 'string' ? { name: change } : change;
  if (join) {
    const texts = join.map((part) => valueAt(body, part)).filter((text) => typeof text === 'string' && text !== '');
    return texts.length === 0 ? undefined : texts.join(' ');
  }
  const value = valueAt(body, path);
  if (typeof value === 'number' && as === 'seconds') return value * 1_000;
  if (typeof value === 'number' && as === 'seconds-from-now') return Date.now() + value * 1_000;
  if (typeof value !== 'string') return value;
  const word = value.toLowerCase();
  return Object.entries(values).find(([, theirs]) => theirs.toLowerCase() === word)?.[0] ?? value;
}

function assumedError(body: unknown, { fields = {}, codes = {} }: NonNullable<WireChanges['errors']>): unknown {
  if (body === null || typeof body !== 'object') return body;
  const error: Record<string, unknown> = { ...body };
  for (const [field, path] of Object.entries(fields)) error[field] = valueAt(body, path);
  const [known] = Object.entries(codes).find(([, word]) => word === error['code']) ?? [];
  return { ...error, code: known ?? error['code'] };
}
