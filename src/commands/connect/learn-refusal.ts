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
import { jsonOf, type RawAnswer } from '../../drift/facts.ts';
import { bestOf } from './leaves.ts';
import type { PlatformPlace, SeenAnswer } from './platform-place.ts';

const stop = 'stop';
const constant = 'constant';
const otherwise = 'other';
const methods = ['GET', 'POST', 'PUT', 'PATCH'] as const;

/** Learns from a refusal what the request must be. The same call is made again afterwards. Throws `KitError` if nobody knows. */
export async function learnRefusal(
  place: PlatformPlace,
  name: WireCallName,
  { answer, shown }: SeenAnswer,
): Promise<void> {
  const { dialogue, learned } = place;
  dialogue.say(`  ${answer.status}: ${shown === '' ? '(no body)' : shown}`);
  if (answer.status >= 500) throw refused(name, answer, 'try again when the platform is well');
  if (answer.status === 401 || answer.status === 403)
    throw refused(name, answer, 'check the permissions of the API key and launch the app again for a fresh token');
  const method = allowedMethod(place, name, answer);
  if (method !== null) {
    dialogue.say(`  the method is ${method}`);
    return learned.changeCall(name, { method });
  }
  const body = jsonOf(answer);
  if (hasParts(name) && expectsZero(place, body)) {
    dialogue.say('  parts are counted from 0');
    return learned.change({ limits: { ...learned.changes.limits, firstPartNumber: 0 } });
  }
  if (answer.status === 404 || answer.status === 405) return learnPath(place, name);
  const sent = sentNames(place, name);
  const named = namesIn(body);
  const wanted = named.find(({ path }) => !sent.includes(path));
  if (wanted) return learnField(place, name, wanted);
  const unwanted = completionFields.find((field) => named.some(({ path }) => path === nameOf(place, name, field)));
  if (isCompletion(name) && unwanted) return leaveOut(place, name, unwanted);
  return learnOtherwise(place, name);
}

function refused(name: WireCallName, { status }: RawAnswer, advice: string): KitError {
  return new KitError('not_connected', `${interfaceCalls[name]?.summary}: the platform answers ${status}; ${advice}`);
}

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

/** The name under which a field of ours goes out. */
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

interface NamedField {
  readonly path: string;
  readonly message: string;
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
      [...body.matchAll(sentence)].flatMap(([, path = '']) => (path === 'field' ? [] : [{ path, message: body }])),
    );
  if (body === null || typeof body !== 'object' || depth > deepestError) return [];
  const fields = new Map<string, unknown>(Object.entries(body));
  const textOf = (names: readonly string[]) =>
    names.map((name) => fields.get(name)).find((text) => typeof text === 'string');
  // FastAPI: the first part says where in the request.
  const location = fields.get('loc');
  const path = textOf(placeNames) ?? (Array.isArray(location) ? location.slice(1).join('.') : '');
  const message = textOf(messageNames) ?? '';
  const named =
    path === '' || message === '' ? [] : [{ path: path.replace(/^[/#.]+/, '').replaceAll('/', '.'), message }];
  return [...named, ...[...fields.values()].flatMap((member) => namesIn(member, depth + 1))];
}

async function learnPath(place: PlatformPlace, name: WireCallName): Promise<void> {
  const { learned, dialogue } = place;
  const form = changedForm(name, learned.call(name));
  const takes = [...Object.keys(wireCalls[name].request), ...wireCalls[name].extra];
  const places = place.recording.placesOf(name).filter((other) => other !== `${form.method} ${form.path}`);
  const answer = await dialogue.ask({
    about: `calls.${name}.path`,
    text: `${interfaceCalls[name]?.summary} is not at ${form.method} ${form.path}. Where is it? Write PATH or METHOD PATH, with :name for a value (${takes.map((field) => `:${field}`).join(' ')}), or ${stop}.`,
    choices: places.map((value) => ({ value, label: 'in the recording' })),
    isOpen: true,
    check: (line) => (line === stop ? null : learned.problemOf(name, placeIn(line, form.method))),
  });
  if (answer === stop)
    throw new KitError('not_connected', `${interfaceCalls[name]?.summary}: the platform has no such call`);
  learned.changeCall(name, placeIn(answer, form.method));
}

function placeIn(line: string, now: string): CallChanges {
  const [, method, path = ''] = /^(?:(GET|POST|PUT|PATCH) +)?(\S+)$/.exec(line.trim()) ?? [null, undefined, line];
  const known = methods.find((other) => other === method && other !== now);
  return { path, ...(known && { method: known }) };
}

/** A field that the platform misses is one of ours under another name, or has a value that never changes. */
async function learnField(place: PlatformPlace, name: WireCallName, { path, message }: NamedField): Promise<void> {
  const { learned, dialogue } = place;
  const form = changedForm(name, learned.call(name));
  const fields = [...new Set([...form.fields.map(({ field }) => field), ...wireCalls[name].extra])].filter(
    (field) => field !== 'token',
  );
  const [likely] =
    bestOf(path, fields).paths.length > 0
      ? bestOf(path, fields).paths
      : fields.filter((field) => bestOf(field, [path]).likeness > 0);
  const chosen = await dialogue.ask({
    about: `calls.${name}.request:${path}`,
    text: `The platform wants ${JSON.stringify(path)}: ${message}. What is it?`,
    choices: [
      ...fields.map((field) => ({ value: field, label: `our \`${field}\`` })),
      ...(form.file === null ? [] : [{ value: 'the file', label: 'the part with the bytes of the file' }]),
      { value: constant, label: 'a value that is always the same' },
      { value: otherwise, label: 'something else' },
    ],
    ...(likely !== undefined && { preset: likely }),
  });
  if (chosen === otherwise) return learnOtherwise(place, name);
  if (chosen === 'the file') return learned.changeCall(name, { file: path });
  if (chosen === constant) return learnConstant(place, name, path, message);
  const before = wireCalls[name].request[chosen] ?? 'body';
  const isHeader = path.includes('-') && before !== 'query';
  const to: 'header' | 'query' | 'body' = isHeader ? 'header' : form.method === 'GET' || form.isRaw ? 'query' : 'body';
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
  if (answer === 'no') return learnOtherwise(place, name);
  learned.change({ refusedFields: [...(learned.changes.refusedFields ?? []), field] });
}

/** The error does not say enough: the person does. */
async function learnOtherwise(place: PlatformPlace, name: WireCallName): Promise<void> {
  const { learned, dialogue } = place;
  const form = changedForm(name, learned.call(name));
  const hasFile = form.file !== null;
  const what = await dialogue.ask({
    about: `calls.${name}`,
    text: 'What is different there?',
    choices: [
      { value: 'field', label: 'a field has another name' },
      { value: constant, label: 'a field with a value that is always the same is missing' },
      { value: 'path', label: 'the path or the method' },
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
  const nameFor = (about: string, text: string) => dialogue.ask({ about, text });
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
    `${interfaceCalls[name]?.summary}: the platform refuses the request. Ask its operator what the call takes, then run connect again: what it has learned is kept`,
  );
}
