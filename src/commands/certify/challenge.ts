import { createHash } from 'node:crypto';
import type { Scenario } from './scenarios.ts';

/** Parts of a plan that a seed decides. They stand in the report, and a signature covers them. */
export interface Challenge {
  readonly seed: string;
  /** The people who launch the app. */
  readonly users: readonly { readonly name: string; readonly email: string; readonly organization: string }[];
  /** Scenes of the catalog, which an app under test may be asked to process. */
  readonly items: readonly { readonly fileName: string; readonly sizePixels: number; readonly shift: number }[];
  /** Scenarios as drawn, in words, by their ids, in the order in which they began. */
  readonly drawn: Readonly<Record<string, string>>;
}

const given = [
  'Adaeze',
  'Björn',
  'Chiara',
  'Dilnoza',
  'Emre',
  'Farida',
  'Goran',
  'Hinata',
  'Inés',
  'Jomo',
  'Katya',
  'Lwazi',
] as const;
const family = [
  'Abdi',
  'Berg',
  'Costa',
  'Dvořák',
  'Ekwueme',
  'Fujita',
  'García',
  'Haddad',
  'Ivanova',
  'Joshi',
  'Keita',
  'Larsen',
] as const;
const places = ['bay', 'delta', 'fjord', 'harbour', 'lagoon', 'marsh', 'ridge', 'valley'] as const;
const leastPixels = 64;
const maxPixels = 320;
const transient = [500, 502, 503, 504] as const;
const latestStartMs = 6_000;

/** Numbers from 0 to 1 that a seed decides: an app that does not know it cannot know them. */
function drawFrom(seed: string): () => number {
  let count = 0;
  return () => createHash('sha256').update(`${seed} ${count++}`).digest().readUInt32BE(0) / 2 ** 32;
}

/**
 * The plan as a seed draws it: users, scenes, order and moment of the launches, who launches on what, which call is struck, how
 * often, by which status and for how long. What a scenario demands stays as it is. `usesItems`: the app is told to process the
 * scenes. Default true.
 */
export function challengePlan(
  plan: readonly Scenario[],
  seed: string,
  { usesItems = true }: { readonly usesItems?: boolean } = {},
): { readonly scenarios: readonly Scenario[]; readonly challenge: Challenge } {
  const draw = drawFrom(seed);
  const among = (from: number, to: number) => from + Math.floor(draw() * (to - from + 1));
  const pick = <T>(all: readonly [T, ...T[]]): T => all[among(0, all.length - 1)] ?? all[0];
  const users = Array.from({ length: 4 }, (_, i) => {
    const [first, last] = [pick(given), pick(family)];
    return {
      name: `${first} ${last}`,
      email: `${createHash('sha256').update(`${seed} ${i}`).digest('hex').slice(0, 12)}@users.example`,
      organization: pick(['Coastal Survey', 'Forest Office', 'River Board', 'City of Brest', 'Crop Watch']),
    };
  });
  const items = Array.from({ length: 4 }, (_, i) => ({
    fileName: `${pick(places)}-${i + 1}${among(10, 99)}.tif`,
    sizePixels: among(leastPixels, maxPixels),
    // Beyond the slanted edges of the first scene.
    shift: among(1_000, 100_000),
  }));
  const drawn: Record<string, string> = {};
  const order = plan.map((scenario) => ({ scenario, place: draw() })).sort((a, b) => a.place - b.place);
  const scenarios = order.map(({ scenario }): Scenario => {
    const startMs = among(0, latestStartMs);
    const [user, item] = [among(0, users.length - 1), among(0, items.length - 1)];
    const faults = scenario.faults?.map((fault) => {
      const { effect } = fault;
      if (
        'status' in effect &&
        !('afterWork' in effect) &&
        effect.status >= 500 &&
        effect.retryAfterSeconds === undefined
      )
        return { ...fault, effect: { status: pick(transient) } };
      if ('status' in effect && 'retryAfterSeconds' in effect && effect.retryAfterSeconds !== undefined)
        return { ...fault, effect: { ...effect, retryAfterSeconds: effect.retryAfterSeconds + among(0, 2) } };
      if ('delayMs' in effect) return { ...fault, effect: { delayMs: among(1_500, 4_000) } };
      return fault;
    });
    drawn[scenario.id] = [
      `after ${startMs} ms`,
      `by ${users[user]?.name}`,
      ...(usesItems ? [`on ${items[item]?.fileName}`] : []),
      ...(faults ?? []).map(({ endpoint, effect }) => `${endpoint} ${JSON.stringify(effect)}`),
    ].join(', ');
    return { ...scenario, startMs, user, item, ...(faults ? { faults } : {}) };
  });
  return { scenarios, challenge: { seed, users, items, drawn } };
}
