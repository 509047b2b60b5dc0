import type { RunState } from '../../src/app/runs/run-state.ts';

/** States in which a fault can meet a run: one that has ended needs nothing any more. */
export const faultStates = [
  'CREATED',
  'AWAITING_APPROVAL',
  'APPROVED',
  'PROCESSING',
  'UPLOADING',
] as const satisfies readonly RunState[];
export type FaultState = (typeof faultStates)[number];

/** Families of faults, each with its requirement, such as a shared database or a disk that can be filled. `fleet`: a shared database, and what operators do to its processes. `executor`: steps that other processes do. */
export const families = {
  'app killed': 'alone',
  'app stopped': 'alone',
  'worker killed': 'shared',
  'worker stopped': 'shared',
  'web killed': 'shared',
  'database away': 'shared',
  'connections cut': 'shared',
  'worker rolled': 'fleet',
  'web rolled': 'fleet',
  'worker drained': 'fleet',
  'run requeued': 'fleet',
  'database slow': 'fleet',
  'platform killed': 'any',
  'platform cut': 'any',
  'platform stalls': 'any',
  'platform truncates': 'any',
  'platform garbage': 'any',
  'platform silent': 'any',
  'executor killed': 'executor',
  'executor ended': 'executor',
  'executor frozen': 'executor',
  'app disk full': 'disk',
  'platform disk full': 'disk',
} as const satisfies Record<string, 'alone' | 'shared' | 'fleet' | 'any' | 'disk' | 'executor'>;
export type Family = keyof typeof families;

export interface DrillPlan {
  readonly families: readonly Family[];
  /** Faults of each family. */
  readonly each: number;
  /** At least so many of each family in each state. */
  readonly leastInEach: number;
  readonly seed: number;
  /** Default: all of them. */
  readonly states?: readonly FaultState[];
  /** Endpoint whose answers are lost before every kill of the app. Default: every other time, one that belongs to the state. */
  readonly lose?: string;
  /** Length of the platform's silence, in milliseconds. Default 20,000. */
  readonly silenceMs?: number;
}

/** Number of times that each family has met a run in each state. */
export type Counts = Record<Family, Record<FaultState, number>>;

export function noCounts(): Counts {
  const none = () => Object.fromEntries(faultStates.map((state) => [state, 0])) as Record<FaultState, number>;
  return Object.fromEntries(Object.keys(families).map((family) => [family, none()])) as Counts;
}

export const total = (counts: Readonly<Record<FaultState, number>>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0);

/** Longest delay of a fault after a run has reached the state, in milliseconds. A fault can thus fall anywhere in the state. */
const spreadMs: Readonly<Record<FaultState, number>> = {
  CREATED: 350,
  AWAITING_APPROVAL: 400,
  APPROVED: 0,
  PROCESSING: 900,
  UPLOADING: 1_100,
};

export interface PlannedFault {
  readonly family: Family;
  readonly state: FaultState;
  readonly delayMs: number;
}

/** The next fault: of a family and in a state that lack some, at a seeded moment. Null where none lacks any. */
export function nextFault(counts: Counts, plan: DrillPlan, random: () => number): PlannedFault | null {
  const states = plan.states ?? faultStates;
  const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(random() * from.length)];
  const lacksIn = (family: Family) => states.filter((state) => counts[family][state] < plan.leastInEach);
  const family = pick(plan.families.filter((one) => total(counts[one]) < plan.each || lacksIn(one).length > 0));
  if (family === undefined) return null;
  const lacking = lacksIn(family);
  const isShort =
    plan.each - total(counts[family]) <=
    lacking.reduce((sum, state) => sum + plan.leastInEach - counts[family][state], 0);
  const state = pick(lacking.length > 0 && (isShort || random() < 0.7) ? lacking : states) ?? 'PROCESSING';
  return { family, state, delayMs: Math.floor(random() * spreadMs[state]) };
}

const losable: Readonly<Record<FaultState, readonly string[]>> = {
  CREATED: ['operation.create'],
  AWAITING_APPROVAL: ['operation.status'],
  APPROVED: [],
  PROCESSING: [],
  UPLOADING: ['upload.initiate', 'upload.chunk', 'upload.complete'],
};

/** In the states that call the platform every other kill falls together with answers that are lost until then: the work is done, and nobody was told. */
export function lostAnswer(state: FaultState, random: () => number): string | undefined {
  const endpoints = losable[state];
  return random() < 0.5 ? endpoints[Math.floor(random() * endpoints.length)] : undefined;
}
