import {
  changedForm,
  completionFields,
  interfaceCalls,
  isCompletion,
  KitError,
  valueAt,
  wireCalls,
  type CallChanges,
  type WireCallName,
} from '../../contract/index.ts';
import type { RawAnswer } from '../../drift/facts.ts';
import { isFieldName, likeness } from './leaves.ts';
import type { PlatformPlace, SeenAnswer } from './platform-place.ts';

const stop = 'stop';
const constant = 'constant';
const otherwise = 'other';
const methods = ['GET', 'POST', 'PUT', 'PATCH'] as const;

/** Learns from a refusal what the request must be. The same call is made again afterwards. Throws `KitError` if nobody knows. */
export async function learnRefusal(
  place: PlatformPlace,
  name: WireCallName,
  { answer, body, shown }: SeenAnswer,
  isShown = false,
): Promise<void> {
  const { dialogue, learned } = place;
  const location = answer.headers['location'];
  if (!isShown)
    dialogue.say(
      `  ${answer.status}: ${shown === '' ? '(no body)' : shown}${location === undefined ? '' : ` (Location: ${location})`}`,
    );
  const method = allowedMethod(place, name, answer);
  if (method !== null) {
    dialogue.say(`  the method is ${method}`);
    return learned.changeCall(name, { method });
  }
  if (hasParts(name) && expectsZero(place, body)) {
    dialogue.say('  parts are counted from 0');
    return learned.change({ limits: { ...learned.changes.limits, firstPartNumber: 0 } });
  }
  if (answer.status === 404 || answer.status === 405) return learnPath(place, name);
  const isOfBody = answer.status === 400 || answer.status === 409 || answer.status === 415 || answer.status === 422;
  const sent = sentNames(place, name);
  const named = isOfBody ? namesIn(body) : [];
  const wanted = named.find(({ path }) => !sent.includes(path));
  if (wanted) return learnField(place, name, wanted);
  const unwanted = completionFields.find((field) => named.some(({ path }) => path === nameOf(place, name, field)));
  if (isCompletion(name) && unwanted) return leaveOut(place, name, unwanted);
  return learnOtherwise(place, name, isOfBody ? null : adviceFor(answer));
}

const adviceFor = ({ status }: RawAnswer) =>
  status === 401 || status === 403
    ? 'check the permissions of the API key, and launch the app again for a fresh token'
    : status >= 500
      ? 'try again when the platform is well'
      : 'ask its operator what the call takes';

function allowedMethod(place: PlatformPlace, name: WireCallName, answer: RawAnswer) {
  const allowed = (answer.headers['allow'] ?? '').split(',').map((part) => part.trim().toUpperCase());
  const known = methods.filter((method) => allowed.includes(method));
  const [only] = known;
  if (answer.status !== 405 || known.length !== 1 || only === undefined) return null;
  return only === changedForm(name, place.learned.call(name)).method ? null : only;
}

const expectsZero = ({ learned }: PlatformPlace, body: unknown) =>
  learned.changes.limits?.firstPartNumber !== 0 &&
  valueAt(body, learned.changes.errors?.fields?.expected ?? 'expected') === 0;

/** True for a call that sends the parts of a file. */
const hasParts = (name: WireCallName) => 'partNumber' in wireCalls[name].request;

/** Name that a field of the contract has in the request. */
const nameOf = ({ learned }: PlatformPlace, name: WireCallName, field: string) =>
  changedForm(name, learned.call(name)).fields.find((form) => form.field === field)?.name ?? field;

/** Names that the request has by now. */
function sentNames({ learned }: PlatformPlace, name: WireCallName): string[] {
  const form = changedForm(name, learned.call(name));
  return [
    ...form.fields.map((field) => field.name),
    ...Object.keys(form.constants),
    ...(form.file === null ? [] : [form.file]),
  ];
}

const places = ['header', 'query', 'body'] as const;

interface NamedField {
  readonly path: string;
  readonly message: string;
  /** Part of the request, if the error says so. */
  readonly place?: (typeof places)[number] | undefined;
}

const namePattern = '[A-Za-z_][\\w.-]{0,63}';
/** Sentences that name a field which is missing or wrong. */
const sentences = [
  `["'\`](${namePattern})["'\`](?=[^"'\`]{0,40}(?:required|missing|must|expected))`,
  `(?:missing|required)[a-z ]{0,30}[: ]+["'\`](${namePattern})["'\`]`,
  `\\b(${namePattern}) (?:field )?(?:is|are) (?:required|missing)`,
].map((sentence) => new RegExp(sentence, 'gi'));
/** Names under which error bodies have the place of a wrong value, and the words about it. */
const [placeNames, messageNames] = [
  ['path', 'field', 'property', 'param', 'parameter', 'pointer', 'instancePath'],
  ['message', 'msg', 'error', 'detail', 'description'],
];
const deepestError = 6;

/** Names of wrong fields, with the messages about them, as the error bodies of many frameworks have them. */
export function namesIn(body: unknown, depth = 0): NamedField[] {
  if (typeof body === 'string')
    return sentences.flatMap((sentence) =>
      [...body.matchAll(sentence)].flatMap(([, path = '']) =>
        path === 'field' || !isFieldName(path) ? [] : [{ path, message: body }],
      ),
    );
  if (body === null || typeof body !== 'object' || depth > deepestError) return [];
  const fields = new Map<string, unknown>(Object.entries(body));
  const textOf = (names: readonly string[]) =>
    names.map((name) => fields.get(name)).find((text) => typeof text === 'string');
  // FastAPI: the first part says where in the request.
  const location = fields.get('loc');
  const path = textOf(placeNames) ?? (Array.isArray(location) ? location.slice(1).join('.') : '');
  const message = textOf(messageNames) ?? '';
  // An address of the request is no name of a field.
  const name = /^(https?:|\/.*\/.*\/)/.test(path) ? '' : path.replace(/^[/#.]+/, '').replaceAll('/', '.');
  const isName = name !== '' && name.split('.').every(isFieldName);
  const place = Array.isArray(location) ? String(location[0]) : '';
  const named =
    isName && message !== '' ? [{ path: name, message, place: places.find((known) => known === place) }] : [];
  return [...named, ...[...fields.values()].flatMap((member) => namesIn(member, depth + 1))];
}

/** Asks for the path of a call, and where the platform takes the values that the path does not contain. */
export async function learnPath(place: PlatformPlace, name: WireCallName): Promise<void> {
  const { learned, dialogue } = place;
  const form = changedForm(name, learned.call(name));
  const { request, extra } = wireCalls[name];
  const takes = [...Object.keys(request), ...extra].map((field) => `:${field}`).join(' ');
  const places = place.recording.placesOf(name).filter((other) => other !== `${form.method} ${form.path}`);
  const inPath = form.fields.filter((field) => request[field.field] === 'path').map(({ field }) => field);
  const lostFrom = ({ path = '' }: CallChanges) =>
    inPath.filter((field) => !path.split('/').includes(`:${field}`) && !isElsewhere(learned.call(name), field));
  const answer = await dialogue.ask({
    about: `calls.${name}.path`,
    text: `${interfaceCalls[name]?.summary} is not at ${form.method} ${form.path}. Where is it? Write PATH or METHOD PATH, with :name for a value (${takes}), or ${stop}.`,
    choices: places.map((value) => ({ value, label: 'in the recording' })),
    isOpen: true,
    check(line) {
      if (line === stop) return null;
      const changes = placeIn(line, form.method);
      const moved = Object.fromEntries(
        lostFrom(changes).map((field) => [field, { in: 'query', name: field }] as const),
      );
      return learned.problemOf(name, { ...changes, request: moved });
    },
  });
  if (answer === stop)
    throw new KitError('not_connected', `${interfaceCalls[name]?.summary}: the platform has no such call`);
  const changes = placeIn(answer, form.method);
  const moved: NonNullable<CallChanges['request']> = {};
  for (const field of lostFrom(changes)) {
    const line = await dialogue.ask({
      about: `calls.${name}.request.${field}`,
      text: `The path has no :${field}. Where does the platform take it? Write query NAME or header NAME.`,
      check: (text) => (placeOf(text) ? null : `write query or header, and its name there, such as query ${field}`),
    });
    moved[field] = placeOf(line) ?? field;
  }
  learned.changeCall(name, { ...changes, ...(Object.keys(moved).length > 0 && { request: moved }) });
}

const isElsewhere = ({ request }: CallChanges, field: string) => typeof request?.[field] === 'object';

function placeOf(line: string): { in: 'query' | 'header'; name: string } | null {
  const [, place, name = ''] = /^(query|header) +(\S+)$/.exec(line.trim()) ?? [];
  return (place === 'query' || place === 'header') && isFieldName(name) ? { in: place, name } : null;
}

function placeIn(line: string, now: string): CallChanges {
  const [, method, path = ''] = /^(?:(GET|POST|PUT|PATCH) +)?(\S+)$/.exec(line.trim()) ?? [null, undefined, line];
  const known = methods.find((other) => other === method && other !== now);
  return { path, ...(known && { method: known }) };
}

/** Asks what a missing field is: a field of the contract under another name, or a constant. */
async function learnField(
  place: PlatformPlace,
  name: WireCallName,
  { path, message, place: part }: NamedField,
): Promise<void> {
  const { learned, dialogue } = place;
  const form = changedForm(name, learned.call(name));
  const fields = [...new Set([...form.fields.map(({ field }) => field), ...wireCalls[name].extra])].filter(
    (field) => field !== 'token',
  );
  const [likely] = fields
    .filter((field) => likeness(field, path) > 0)
    .toSorted((a, b) => likeness(b, path) - likeness(a, path));
  const chosen = await dialogue.ask({
    about: `calls.${name}.request:${path}`,
    text: `The platform wants ${JSON.stringify(path)}: ${message}. What is it?`,
    choices: [
      ...fields.map((field) => ({ value: field, label: `our \`${field}\`` })),
      ...(form.file === null ? [] : [{ value: 'the file', label: 'the part with the bytes of the file' }]),
      ...(part === 'header' || path.includes('-') ? [{ value: 'the API key', label: 'the key of your app' }] : []),
      { value: constant, label: 'a value that is always the same' },
      { value: otherwise, label: 'something else' },
    ],
    ...(likely !== undefined && { preset: likely }),
  });
  if (chosen === otherwise) return learnOtherwise(place, name, null);
  if (chosen === 'the API key') return learned.change({ apiKey: { header: path } });
  if (chosen === 'the file') return learned.changeCall(name, { file: path });
  if (chosen === constant) return learnConstant(place, name, path, message);
  const before = wireCalls[name].request[chosen] ?? 'body';
  const isHeader = path.includes('-') && before !== 'query';
  const usual = isHeader ? 'header' : form.method === 'GET' || form.isRaw ? 'query' : 'body';
  const to = part ?? usual;
  dialogue.say(`  \`${chosen}\` goes out as ${path}${to === 'body' ? '' : `, in the ${to}`}`);
  learned.changeCall(name, { request: { [chosen]: to === before ? path : { in: to, name: path } } });
}

async function learnConstant(place: PlatformPlace, name: WireCallName, path: string, message: string): Promise<void> {
  const suggested = place.recording.constantOf(path) ?? /must be (?:one of )?["'`[]*([\w.-]+)/.exec(message)?.[1];
  const value = await place.dialogue.ask({
    about: `calls.${name}.constants.${path}`,
    text: `Which value has ${JSON.stringify(path)}? Numbers, true and false are sent as such; put a text of digits in "quotes".`,
    ...(suggested !== undefined && !['a', 'an', 'the', 'at', 'of'].includes(suggested) && { preset: suggested }),
  });
  place.learned.changeCall(name, { constants: { [path]: valueOf(value) } });
}

function valueOf(text: string): string | number | boolean {
  if (/^".*"$/.test(text)) return text.slice(1, -1);
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text;
}

async function leaveOut(
  place: PlatformPlace,
  name: WireCallName,
  field: (typeof completionFields)[number],
): Promise<void> {
  const { learned, dialogue } = place;
  const answer = await dialogue.ask({
    about: `refusedFields.${field}`,
    text: `The platform refuses \`${field}\`, which the app may leave out. Leave it out?`,
    choices: [
      { value: 'yes', label: '' },
      { value: 'no', label: 'something else is wrong' },
    ],
    preset: 'yes',
  });
  if (answer === 'no') return learnOtherwise(place, name, null);
  learned.change({ refusedFields: [...new Set([...(learned.changes.refusedFields ?? []), field])] });
}

/** Asks for the difference, because the error does not name it. `advice`: what to do if the request is right; null if it is wrong. */
async function learnOtherwise(place: PlatformPlace, name: WireCallName, advice: string | null): Promise<void> {
  const { learned, dialogue } = place;
  const hasFile = changedForm(name, learned.call(name)).file !== null;
  const what = await dialogue.ask({
    about: `calls.${name}`,
    text: advice === null ? 'What is different there?' : `What now? (${advice})`,
    choices: [
      ...(advice === null ? [] : [{ value: 'again', label: 'make the call again' }]),
      { value: 'path', label: 'the path or the method is another' },
      { value: 'field', label: 'a field has another name' },
      { value: constant, label: 'a field with a value that is always the same is missing' },
      ...(hasFile
        ? [
            { value: 'raw', label: 'the body is the bytes of the file alone' },
            { value: 'file', label: 'the part with the bytes has another name' },
            { value: 'from-0', label: 'parts are counted from 0' },
          ]
        : []),
      { value: stop, label: 'I do not know' },
    ],
  });
  const nameFor = (about: string, text: string) =>
    dialogue.ask({
      about,
      text,
      check: (line) => (line.split('.').every(isFieldName) ? null : 'must be the name of a field'),
    });
  if (what === 'again') return;
  if (what === 'path') return learnPath(place, name);
  if (what === 'raw') return learned.changeCall(name, { body: 'raw' });
  if (what === 'from-0') return learned.change({ limits: { ...learned.changes.limits, firstPartNumber: 0 } });
  if (what === 'file')
    return learned.changeCall(name, { file: await nameFor(`calls.${name}.file`, 'Which name has that part?') });
  if (what === constant || what === 'field') {
    const path = await nameFor(
      `calls.${name}.${what}`,
      `Which name has the ${what === constant ? 'missing ' : ''}field at the platform?`,
    );
    return what === constant
      ? learnConstant(place, name, path, '')
      : learnField(place, name, { path, message: 'you say so' });
  }
  throw new KitError(
    'not_connected',
    `${interfaceCalls[name]?.summary}: the platform refuses the request; ${advice ?? 'ask its operator what the call takes'}, then run connect again`,
  );
}
