import { assumptions, KitError, type AssumptionId } from '../contract/index.ts';
import { attributionOf, isSuccess, probeOf, shownBy, type Attribution } from './attribution.ts';
import { isWithin } from './facts.ts';
import type { Findings } from './probes/probe.ts';
import { probes } from './probes.ts';
import { Conversation, levels, NotObserved, type Exchange, type Level, type Target } from './target.ts';

/** Exchanges and missing probes of one platform. */
export interface Observations {
  readonly exchanges: readonly Exchange[];
  /** Probes that could not be made, and why. */
  readonly missing: Readonly<Record<string, string>>;
}

/** `richer`: all that is expected, and more. `not observed` is never good: nobody knows. */
export const verdicts = ['same', 'richer', 'not observed', 'differs', 'breaks the app'] as const;
export type DriftVerdict = (typeof verdicts)[number];

export interface Difference extends Attribution {
  readonly exchange: string;
  /** Key in `Facts`: `status`, `body.operationId`. */
  readonly fact: string;
  readonly expected: string | null;
  readonly found: string | null;
  readonly verdict: Exclude<DriftVerdict, 'same' | 'not observed'>;
}

/** Makes the probes of a level, and of those below it. Throws `KitError` where nothing answers. */
export async function observe(target: Target, level: Level): Promise<Observations> {
  const at = new Conversation(target);
  const found: Findings = {};
  const missing: Record<string, string> = {};
  const allowed = levels.slice(0, levels.indexOf(level) + 1);
  if (level !== 'read') at.hide(await target.token());
  for (const probe of probes) {
    if (!allowed.includes(probe.level)) {
      missing[probe.id] = `it needs --level ${probe.level}`;
      continue;
    }
    try {
      await probe.run(at, found);
    } catch (error) {
      if (error instanceof KitError) throw error;
      // An answer that is nothing like what is expected may leave a probe without what it goes on with.
      missing[probe.id] = error instanceof NotObserved ? error.message : `it could not go on: ${String(error)}`;
    }
  }
  return { exchanges: at.exchanges, missing };
}

/** Probes of a level, and of those below it, that could not be made. */
export function unmadeOf({ missing }: Observations, level: Level): string[] {
  const allowed = levels.slice(0, levels.indexOf(level) + 1);
  return probes.flatMap(({ id, level: own }) =>
    allowed.includes(own) && missing[id] !== undefined ? [`${id}: ${missing[id]}`] : [],
  );
}

/** Returns the differences of a platform (`found`) from the sandbox (`expected`). An exchange that only the platform has is one. */
export function compare(expected: Observations, found: Observations): Difference[] {
  const others = keyed(found.exchanges);
  const differences = [...keyed(expected.exchanges)].flatMap(([key, exchange]) => {
    const other = others.get(key);
    return other ? differencesOf(exchange, other, found.exchanges) : [];
  });
  return [
    ...differences,
    ...alone(found, expected).map((exchange): Difference => ({
      ...{ exchange: exchange.name, fact: 'exchange', expected: null, found: 'made', verdict: 'richer' },
      ...attributionOf(exchange, exchange, 'exchange', found.exchanges),
    })),
  ];
}

/** Gives the calls of an app the names of the sandbox's exchanges: for each call, that of the first successful exchange. */
export function asProbed(found: Observations, expected: Observations): Observations {
  const exchanges = found.exchanges.flatMap((exchange) => {
    const ours = expected.exchanges.find((other) => other.call === exchange.call && isSuccess(other));
    return ours ? [{ ...exchange, name: ours.name }] : [];
  });
  return { ...found, exchanges };
}

/** Exchanges that only the sandbox has, although their probes could be made: a record of another release lacks them. */
export function unseenOf(expected: Observations, found: Observations): string[] {
  return alone(expected, found).map(({ name }) => `${name}: the platform, or its record, has no such exchange`);
}

/** Reason why a baseline is none; null if each probe of the level was made. */
export function baselineProblem(baseline: Observations, level: Level): string | null {
  const unmade = unmadeOf(baseline, level);
  return unmade.length === 0 && baseline.exchanges.length > 0
    ? null
    : `the sandbox of this command could not be probed, so nothing was compared:${unmade.map((line) => `\n  ${line}`).join('')}\nRun drift again. If the same probes fail, report it to the kit.`;
}

/** Exchanges whose names only one side has. Of polls, the sides have different numbers. */
function alone({ exchanges }: Observations, other: Observations): Exchange[] {
  const names = new Set(other.exchanges.map(({ name }) => name));
  const own = exchanges.filter(({ name }) => !names.has(name) && other.missing[probeOf(name)] === undefined);
  return [...new Map(own.map((exchange) => [exchange.name, exchange])).values()];
}

/** Several may have one name: told apart by what a note is of, and by their order. */
function keyed(exchanges: readonly Exchange[]): Map<string, Exchange> {
  const map = new Map<string, Exchange>();
  for (const exchange of exchanges) {
    const key =
      exchange.method === '' ? `${exchange.name} (${Object.keys(exchange.facts).sort().join()})` : exchange.name;
    let n = 1;
    while (map.has(`${key} ${n}`)) n += 1;
    map.set(`${key} ${n}`, exchange);
  }
  return map;
}

function differencesOf(exchange: Exchange, other: Exchange, seen: readonly Exchange[]): Difference[] {
  const differences: Difference[] = [];
  const tell = (fact: string, expected: string | null, found: string | null, verdict: Difference['verdict']) =>
    differences.push({
      ...{ exchange: exchange.name, fact, expected, found, verdict },
      ...attributionOf(exchange, other, fact, seen),
    });
  const isLost = exchange.facts['status'] !== undefined && isSuccess(exchange) && !isSuccess(other);
  const isUnreadable = exchange.unreadable === null && other.unreadable !== null;
  const breaks = exchange.isOfApp && (isLost || isUnreadable || exchange.method === '');
  for (const [fact, expected] of Object.entries(exchange.facts)) {
    const found = other.facts[fact];
    if (found !== undefined && isWithin(expected, found)) continue;
    // An error and a success, or two errors, have nothing in common but their status.
    if (
      fact !== 'status' &&
      exchange.facts['status'] !== other.facts['status'] &&
      !(isSuccess(exchange) && isSuccess(other))
    )
      continue;
    // A list that holds nothing says nothing of what it holds.
    if (found === undefined && hasEmptyParent(fact, other)) continue;
    tell(
      fact,
      expected,
      found ?? null,
      breaks && (fact === 'status' || isUnreadable || exchange.method === '') ? 'breaks the app' : 'differs',
    );
  }
  if (isUnreadable && differences.every(({ verdict }) => verdict !== 'breaks the app'))
    tell('body', 'readable', other.unreadable, 'breaks the app');
  for (const [fact, found] of Object.entries(other.facts))
    if (
      !(fact in exchange.facts) &&
      exchange.facts['status'] === other.facts['status'] &&
      !hasEmptyParent(fact, exchange)
    )
      tell(fact, null, found, /^header\.(set-cookie|location)$/.test(fact) ? 'differs' : 'richer');
  return differences;
}

/** The nearest list above a fact, where the answer has it and nothing in it. */
function hasEmptyParent(fact: string, { facts }: Exchange): boolean {
  const end = fact.lastIndexOf('[]');
  if (end < 0) return false;
  const parent = fact.slice(0, end);
  return facts[parent] === 'array' && !Object.keys(facts).some((name) => name.startsWith(`${parent}[]`));
}

export interface AssumptionVerdict {
  readonly id: AssumptionId;
  readonly verdict: DriftVerdict;
  /** Reason why the assumption was not observed. */
  readonly reason: string | null;
}

/** Returns a verdict for every assumption. */
export function judge(
  found: Observations,
  expected: Observations,
  differences: readonly Difference[],
): AssumptionVerdict[] {
  return assumptions.map((assumption): AssumptionVerdict => {
    const { id, probe } = assumption;
    if (typeof probe !== 'string') return { id, verdict: 'not observed', reason: `by hand: ${probe.byHand}` };
    const verdict = worst(
      differences.filter((difference) => difference.assumption === id).map((difference) => difference.verdict),
    );
    const reason = verdict === 'same' ? unshownReason(assumption, found, expected) : null;
    return reason === null ? { id, verdict, reason } : { id, verdict: 'not observed', reason };
  });
}

/** Reason why nothing shows whether an assumption holds; null if something does. */
function unshownReason(
  assumption: Parameters<typeof shownBy>[0],
  found: Observations,
  expected: Observations,
): string | null {
  const names = shownBy(assumption, expected.exchanges);
  const probe = typeof assumption.probe === 'string' ? assumption.probe : '';
  const seen = found.exchanges.filter(({ name }) => names.includes(name));
  const isLikeOurs = (exchange: Exchange) => {
    const ours = expected.exchanges.find(
      ({ name, method }) => name === exchange.name && (method === '') === (exchange.method === ''),
    );
    return ours !== undefined && (isSuccess(ours) ? isSuccess(exchange) : true);
  };
  if (seen.some(isLikeOurs)) return null;
  const [first] = seen;
  if (first) return `${first.name} was answered ${first.facts['status']}`;
  return found.missing[probe] ?? expected.missing[probe] ?? 'the probe saw nothing';
}

export function worst(all: readonly DriftVerdict[]): DriftVerdict {
  return all.reduce((a, b) => (verdicts.indexOf(b) > verdicts.indexOf(a) ? b : a), 'same');
}
