import * as z from 'zod';
import { changedForm, interfaceCalls, wireCalls, type CallChanges, type WireCallName } from '../../contract/index.ts';
import type { PlatformPlace } from './platform-place.ts';

/**
 * Asks for the platform's names of fields that a request need not have: a platform ignores one whose name it does not know, so
 * no answer shows that it is called otherwise.
 */
export async function learnOptional(place: PlatformPlace, name: WireCallName): Promise<void> {
  const { learned, dialogue } = place;
  const fields = optionalFields(name).filter((field) => learned.call(name).request?.[field] === undefined);
  if (fields.length === 0) return;
  const sent = changedForm(name, learned.call(name)).fields;
  const nameOf = (field: string) => sent.find((known) => known.field === field)?.name ?? field;
  const answer = await dialogue.ask({
    about: `calls.${name}.optional`,
    text: `A platform may ignore these fields, if it calls them otherwise: ${fields.map(nameOf).join(', ')}. Write OURS=THEIRS for each that has another name, with spaces between them.`,
    preset: 'same',
    check: (line) => {
      const pairs = pairsIn(line);
      const problem = pairs?.find(([field]) => !fields.some((known) => [known, nameOf(known)].includes(field)));
      if (pairs === null) return 'write OURS=THEIRS, such as description=summary';
      return problem ? `${problem[0]} is none of them` : learned.problemOf(name, renamed(pairs));
    },
  });
  const pairs = pairsIn(answer) ?? [];
  if (pairs.length > 0) learned.changeCall(name, renamed(pairs));

  function renamed(pairs: readonly (readonly [ours: string, theirs: string])[]): CallChanges {
    const changes = pairs.map(([ours, theirs]): [string, NonNullable<CallChanges['request']>[string]] => {
      const field = fields.find((known) => [known, nameOf(known)].includes(ours)) ?? ours;
      const { headers } = wireCalls[name];
      return [field, field in headers ? { in: 'header', name: theirs } : theirs];
    });
    return { request: Object.fromEntries(changes) };
  }
}

/** Null where a word is no pair. */
function pairsIn(line: string): [ours: string, theirs: string][] | null {
  if (line === 'same') return [];
  const pairs = line
    .trim()
    .split(/\s+/)
    .map((word) => word.split('='));
  if (pairs.some(([ours, theirs, ...more]) => !ours || !theirs || more.length > 0)) return null;
  return pairs.map(([ours = '', theirs = '']) => [ours, theirs]);
}

/** Fields of a request that the app sends, and that may be left out. */
function optionalFields(name: WireCallName): string[] {
  const { request, headers = {} } = interfaceCalls[name] ?? {};
  const shape: Readonly<Record<string, unknown>> = request instanceof z.ZodObject ? request.shape : {};
  const inBody = Object.keys(shape).filter((field) => {
    const schema = shape[field];
    return schema instanceof z.ZodType && schema.safeParse(undefined).success;
  });
  return [...inBody, ...Object.keys(headers)];
}
