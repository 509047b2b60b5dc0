import {
  interfaceCalls,
  isCompletion,
  KitError,
  operationStatus,
  valueAt,
  wireCalls,
  type AnswerHead,
  type CallChanges,
  type WireCallName,
} from '../../contract/index.ts';
import { jsonOf, unreadableReason } from '../../drift/facts.ts';
import { bestOf, leavesOf, type Leaf } from './leaves.ts';
import { learnPath } from './learn-refusal.ts';
import type { PlatformPlace, SeenAnswer } from './platform-place.ts';

type ResponseChange = NonNullable<CallChanges['response']>[string];

const none = 'none';
const elsewhere = 'elsewhere';
/** Fields of objects of the catalog, whose form is a standard. */
const standard: readonly string[] = ['links', 'geometry', 'bbox', 'message'];
/** Times below these numbers are no milliseconds since 1970, and no seconds since 1970. */
const [leastMilliseconds, leastSeconds] = [1e11, 1e7];

/** The answer comes before the result: the same call must be made again. */
export const again = Symbol('again');

/**
 * Learns where the fields of a call stand in a successful answer. Returns what the client reads from it, or `again`.
 * Throws `KitError` if the answer lacks a value that the app needs.
 */
export async function learnAnswer(
  place: PlatformPlace,
  name: WireCallName,
  { answer, body: shownBody, shown }: SeenAnswer,
): Promise<unknown> {
  const { learned } = place;
  const head: AnswerHead = { status: answer.status, header: (field) => answer.headers[field] };
  const body = jsonOf(answer) ?? answer.body.toString('utf8');
  const fields = wireCalls[name].response;
  if (
    fields.length > 0 &&
    fields[0] !== 'text' &&
    jsonOf(answer) === undefined &&
    !interfaceCalls[name]?.needsNoField
  ) {
    place.dialogue.say(`  ${answer.status}: ${shown}`);
    place.dialogue.say('  that is no JSON, so it is no answer of the call');
    await learnPath(place, name);
    return again;
  }
  const needed = neededFields(place, name, body, head);
  for (const field of fields) {
    if (field !== 'text' && !standard.includes(field))
      await placeField(place, name, field, { body, shownBody }, needed.has(field));
    learnTime(place, name, field, body);
  }
  if (await isUnfinished(place, name, answer.status, body)) return again;
  if (name === 'getOperation') await learnWord(place, { body, shownBody });
  try {
    return learned.profile.calls[name].decode(body, head);
  } catch (error) {
    place.dialogue.say(`  ${answer.status}: ${shown}`);
    place.dialogue.say(`  the app cannot read the answer: ${unreadableReason(error)}`);
    throw new KitError(
      'not_connected',
      `${interfaceCalls[name]?.summary}: the answer lacks what the app needs. Write \`decode\` of calls.${name} in code (docs/wire-profile.md)`,
    );
  }
}

/** Fields that the app cannot do without, and that are not where the profile looks for them. */
function neededFields(place: PlatformPlace, name: WireCallName, body: unknown, head: AnswerHead): ReadonlySet<string> {
  try {
    place.learned.profile.calls[name].decode(body, head);
    return new Set();
  } catch (error) {
    // Errors of zod have issues, others do not.
    const { issues = [] } = error as { issues?: readonly { path: readonly PropertyKey[] }[] };
    return new Set(issues.map(({ path }) => String(path[0] ?? '')));
  }
}

/** A completion that is answered before the file is there is made again, if the platform takes it again. */
async function isUnfinished(place: PlatformPlace, name: WireCallName, status: number, body: unknown): Promise<boolean> {
  const { learned, dialogue } = place;
  const canBe = isCompletion(name) && status === 202 && learned.call(name).unfinished === undefined;
  if (!canBe || fieldAt(learned.call(name), 'fileId', body) !== undefined) return false;
  const answer = await dialogue.ask({
    about: `calls.${name}.unfinished`,
    text: `It answers ${status} and no file yet. Does it answer with the file if the same completion comes again?`,
    choices: [
      { value: 'yes', label: 'the app repeats the completion until the answer has the file' },
      { value: 'no', label: 'the app goes on without the file' },
    ],
    preset: 'yes',
  });
  if (answer !== 'yes') return false;
  learned.changeCall(name, { unfinished: status });
  return true;
}

const changeOf = (changes: CallChanges, field: string): Exclude<ResponseChange, string> => {
  const change = changes.response?.[field] ?? {};
  return typeof change === 'string' ? { name: change } : change;
};

function fieldAt(changes: CallChanges, field: string, body: unknown): unknown {
  const { name = field, join } = changeOf(changes, field);
  if (join) return join.map((path) => valueAt(body, path)).find((value) => value != null);
  return valueAt(body, name) ?? undefined;
}

/** A body as it came, and without secrets. */
interface Bodies {
  readonly body: unknown;
  readonly shownBody: unknown;
}

/** Asks for the place of a field that the answer does not have where the profile looks. `isElsewhere`: what stands there is another one. */
async function placeField(
  place: PlatformPlace,
  name: WireCallName,
  field: string,
  { body, shownBody }: Bodies,
  isNeeded: boolean,
  isElsewhere = false,
): Promise<void> {
  const { learned, dialogue } = place;
  const changes = learned.call(name);
  const found = fieldAt(changes, field, body);
  // An object where a text must be is none.
  const isThere = found !== undefined && (!isNeeded || typeof found !== 'object');
  if (isThere && !isElsewhere) return;
  const leaves = freeLeaves(changes, isElsewhere ? [] : wireCalls[name].response, shownBody);
  if (leaves.length === 0) return;
  const paths = leaves.map(({ path }) => path);
  const best = bestOf(field, paths);
  const [likely] = best.paths;
  // Below other objects the same name may be that of something else.
  const isPlain = likely !== undefined && (!likely.includes('.') || isEnveloped(paths));
  if (best.likeness === 2 && best.paths.length === 1 && isPlain && !isElsewhere) {
    dialogue.say(`  \`${field}\` is ${likely}`);
    return setField(place, name, field, { name: likely });
  }
  const preset = likely ?? (isNeeded || isElsewhere ? undefined : none);
  const holdsToken = interfaceCalls[name]?.answerHolds === 'token';
  const chosen = await dialogue.ask({
    about: `calls.${name}.response.${field}`,
    text: `Which field is \`${field}\`${meaningOf(name, field)}? Two fields that make one text: a+b.`,
    choices: [
      ...leaves.map(({ path, value }) => ({ value: path, label: place.shownValue(value, holdsToken) })),
      ...(isNeeded ? [] : [{ value: none, label: 'it is not there' }]),
    ],
    isOpen: true,
    ...(preset !== undefined && { preset }),
    check: (answer) => {
      const wanted = answer.split('+').map((part) => pathOf(leaves, part));
      const unknown = wanted.find((path) => path !== none && valueAt(body, path) === undefined);
      return unknown === undefined ? null : `the answer has no ${unknown}`;
    },
  });
  if (chosen === none) return;
  const [first = chosen, ...others] = chosen.split('+').map((part) => pathOf(leaves, part));
  setField(place, name, field, others.length > 0 ? { join: [first, ...others] } : { name: first });
}

/** True if all values of an answer lie in one object, and no deeper. */
const isEnveloped = (paths: readonly string[]) =>
  new Set(paths.map((path) => path.split('.')[0])).size === 1 && paths.every((path) => path.split('.').length === 2);

/** A number stands for the choice that has it. */
const pathOf = (leaves: readonly Leaf[], part: string) =>
  /^\d+$/.test(part.trim()) ? (leaves[Number(part) - 1]?.path ?? part) : part.trim();

/** Values that no field has yet. The body is without secrets, so a name that holds one leads nowhere. */
function freeLeaves(changes: CallChanges, fields: readonly string[], body: unknown): Leaf[] {
  const taken = new Set(
    fields
      .filter((field) => fieldAt(changes, field, body) !== undefined)
      .flatMap((field) => {
        const { name = field, join } = changeOf(changes, field);
        return join ?? [name];
      }),
  );
  return leavesOf(body).filter(({ path, value }) => value !== null && !taken.has(path));
}

function setField(place: PlatformPlace, name: WireCallName, field: string, change: Exclude<ResponseChange, string>) {
  const { learned } = place;
  const before = changeOf(learned.call(name), field);
  const { name: path, ...others } = { ...(change.join ? {} : before), ...change };
  const isPlain = Object.keys(others).length === 0 && path !== undefined;
  learned.changeCall(name, {
    response: { [field]: isPlain ? path : { ...(path !== undefined && path !== field && { name: path }), ...others } },
  });
}

const meaningOf = (name: WireCallName, field: string) => {
  const text = interfaceCalls[name]?.descriptions?.[field];
  return text === undefined ? '' : ` (${text.split(/[.:] /)[0]?.replace(/\.$/, '')})`;
};

/** A number tells by its size what it counts. */
function learnTime(place: PlatformPlace, name: WireCallName, field: string, body: unknown): void {
  const value = fieldAt(place.learned.call(name), field, body);
  if (!field.endsWith('At') || typeof value !== 'number' || value >= leastMilliseconds) return;
  const as = value >= leastSeconds ? 'seconds' : 'seconds-from-now';
  if (changeOf(place.learned.call(name), field).as === as) return;
  place.dialogue.say(`  \`${field}\` counts ${as === 'seconds' ? 'seconds since 1970' : 'seconds from now'}`);
  setField(place, name, field, { ...changeOf(place.learned.call(name), field), as });
}

/** The word of an operation's status that the profile does not know. */
async function learnWord(place: PlatformPlace, bodies: Bodies): Promise<void> {
  const { learned, dialogue } = place;
  const word = fieldAt(learned.call('getOperation'), 'status', bodies.body);
  if (typeof word !== 'string') return;
  const { values = {}, ...change } = changeOf(learned.call('getOperation'), 'status');
  const isKnown =
    Object.values(values).some((text) => text.toLowerCase() === word.toLowerCase()) ||
    operationStatus.options.some((status) => status === word && !(status in values));
  if (isKnown) return;
  const status = await dialogue.ask({
    about: `calls.getOperation.response.status.values.${word}`,
    text: `The operation is ${JSON.stringify(word)}. Which of these does it mean?`,
    choices: [
      { value: 'REQUESTED', label: 'the user has not decided' },
      { value: 'APPROVED', label: 'the app may upload' },
      { value: 'REJECTED', label: 'the user said no' },
      { value: 'EXPIRED', label: 'nobody decided in time' },
      { value: elsewhere, label: 'none: the status of the operation is another field' },
    ],
  });
  if (status === elsewhere) {
    await placeField(place, 'getOperation', 'status', bodies, true, true);
    return learnWord(place, bodies);
  }
  const before = values[status];
  if (before !== undefined) dialogue.say(`  a profile has one word for each: ${JSON.stringify(before)} is replaced`);
  learned.changeCall('getOperation', { response: { status: { ...change, values: { ...values, [status]: word } } } });
}
