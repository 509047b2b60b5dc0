import { wireCalls, type CallChanges, type WireCallName, type WireChanges } from '../contract/index.ts';
import type { Difference } from './compare.ts';
import type { Exchange } from './target.ts';

/** A field of an answer that is not there, and one that is there in its place. */
interface Renamed {
  readonly from: string;
  readonly to: string;
}

/**
 * A draft of the wire profile that the answers suggest: fields of answers under other names, and words for the states. What
 * a request wants to be called no answer tells. `known`: changes that the platform was read with; the draft goes on from them. Null
 * where the answers suggest nothing.
 */
export function proposeProfile(
  differences: readonly Difference[],
  exchanges: readonly Exchange[],
  known: WireChanges | null = null,
): WireChanges | null {
  const calls: Partial<Record<WireCallName, CallChanges>> = {};
  const callOf = new Map(exchanges.map((one) => [one.name, one.call]));
  for (const call of Object.keys(wireCalls) as WireCallName[]) {
    const own = differences.filter(({ exchange }) => callOf.get(exchange) === call && !isRefusal(exchange, exchanges));
    const renamed = new Map(renamedIn(own, wireCalls[call].response).map(({ from, to }) => [from, to]));
    const response: NonNullable<CallChanges['response']> = Object.fromEntries<
      string | { name: string; values: Record<string, string> }
    >([...renamed, ...wordsIn(own, renamed.get('status') ?? nameOf(known?.calls?.[call]?.response?.['status']))]);
    if (Object.keys(response).length > 0) calls[call] = { response };
  }
  const refused = differences.filter(({ exchange }) => isRefusal(exchange, exchanges));
  const fields = Object.fromEntries(
    renamedIn(refused, ['error', 'code', 'requestId', 'details']).map(({ from, to }) => [from, to]),
  );
  if (Object.keys(calls).length === 0 && Object.keys(fields).length === 0) return null;
  const found = { calls, ...(Object.keys(fields).length > 0 ? { errors: { fields } } : {}) };
  return { ...(merged(known ?? {}, found) as WireChanges), name: 'proposed by drift' };
}

/** What is known with what was found: objects field by field, anything else as it was found. */
function merged(known: unknown, found: unknown): unknown {
  if (!isObject(known) || !isObject(found)) return found;
  const names = new Set([...Object.keys(known), ...Object.keys(found)]);
  return Object.fromEntries(
    [...names].map((name) => [name, name in found ? merged(known[name], found[name]) : known[name]]),
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isRefusal = (name: string, exchanges: readonly Exchange[]) =>
  !/^2/.test(exchanges.find((one) => one.name === name)?.facts['status'] ?? '');

/** A field that is gone and one that is new, of one kind: the pairs that are most alike in their names first. */
function renamedIn(differences: readonly Difference[], fields: readonly string[]): Renamed[] {
  const gone = new Map<string, string>();
  const fresh = new Map<string, string>();
  for (const { fact, expected, found } of differences) {
    const field = /^body\.(.+)$/.exec(fact)?.[1];
    if (field === undefined) continue;
    if (found === null && expected !== null && fields.includes(field)) gone.set(field, expected);
    if (expected === null && found !== null && !field.includes('[]')) fresh.set(field, found);
  }
  const pairs = [...gone].flatMap(([from, expected]) =>
    [...fresh]
      .filter(([, found]) => isAlike(expected, found))
      .map(([to]) => ({ from, to, distance: distance(from, to.split('.').at(-1)!) })),
  );
  const taken = new Set<string>();
  return pairs
    .sort((a, b) => a.distance - b.distance)
    .filter(({ from, to }) => {
      if (taken.has(`from ${from}`) || taken.has(`to ${to}`)) return false;
      taken.add(`from ${from}`).add(`to ${to}`);
      return true;
    });
}

/** A word where one is expected may stand in a field that no list is known of. */
const isAlike = (expected: string, found: string) =>
  expected === found ||
  (expected === 'word' && /^(text|the word )/.test(found)) ||
  (expected === 'text' && ['url', 'instant', 'word'].includes(found)) ||
  (expected === 'integer' && found === 'number');

/** Another word for the state that an exchange is known to be in. */
const stateOf: Readonly<Record<string, string>> = {
  'create-operation/created': 'REQUESTED',
  'get-operation/requested': 'REQUESTED',
  'approval/approved': 'APPROVED',
};

const nameOf = (change: string | { readonly name?: string | undefined } | undefined) =>
  (typeof change === 'object' ? change.name : change) ?? 'status';

/** `field`: what the wire calls the state. */
function wordsIn(
  differences: readonly Difference[],
  field: string,
): [string, { name: string; values: Record<string, string> }][] {
  const values = Object.fromEntries(
    differences.flatMap(({ exchange, fact, found }) => {
      const word = /^the word (.+)$/.exec(found ?? '')?.[1];
      const state = stateOf[exchange];
      return fact === `body.${field}` && word !== undefined && state !== undefined ? [[state, word]] : [];
    }),
  );
  return Object.keys(values).length > 0 ? [['status', { name: field, values }]] : [];
}

/** Levenshtein's, letters in small. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a.toLowerCase()].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b.toLowerCase()].entries())
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (letter === other ? 0 : 1)));
    row = next;
  }
  return row.at(-1)!;
}
