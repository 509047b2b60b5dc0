import type { RunState } from '../src/app/runs/run-state.ts';

import type { DrillFault } from './platform.ts';

/** States in which a process can be killed: a run that has ended needs none. */
export const killStates = ['CREATED', 'AWAITING_APPROVAL', 'APPROVED', 'PROCESSING', 'UPLOADING'] as const satisfies readonly RunState[];
export type KillState = (typeof killStates)[number];

/** How long after a run reached the state it is killed at most, so that a kill falls anywhere in it. */
const spreadMs: Readonly<Record<KillState, number>> = { CREATED: 350, AWAITING_APPROVAL: 400, APPROVED: 0, PROCESSING: 900, UPLOADING: 1_100 };

export interface Kill {
  readonly state: KillState;
  readonly delayMs: number;
  /** Armed before it. */
  readonly faults: readonly DrillFault[];
}

export interface DrillPlan {
  readonly kills: number;
  /** At least so many in each state. */
  readonly leastInEach: number;
  readonly seed: number;
  /** Default: all of them. */
  readonly states?: readonly KillState[];
  /** Endpoint whose answers are lost before every kill. Default: every other time, one that belongs to the state. */
  readonly lose?: string;
}

/** The next kill: in the state that lacks the most, at a seeded moment. */
export function nextKill(counts: Readonly<Record<KillState, number>>, { kills, leastInEach, states = killStates, lose }: DrillPlan, random: () => number): Kill | null {
  const done = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const lacking = states.filter((state) => counts[state] < leastInEach);
  if (done >= kills && lacking.length === 0) return null;
  const candidates = lacking.length > 0 && random() < 0.7 ? lacking : states;
  const state = candidates[Math.floor(random() * candidates.length)] ?? 'PROCESSING';
  return { state, delayMs: Math.floor(random() * spreadMs[state]), faults: faultsFor(lose ?? lostAnswer(state, random)) };
}

/** So many calls are slowed: more than are made before the next kill. */
const slowedCalls = 10_000;
/** So that a kill can fall into a call. */
const slow: readonly DrillFault[] = Object.entries({ 'operation.create': 300, 'upload.initiate': 60, 'upload.chunk': 25, 'upload.complete': 150 }).map(([endpoint, delayMs]) => ({
  endpoint,
  times: slowedCalls,
  effect: { delayMs },
}));

const droppable: Readonly<Record<KillState, readonly string[]>> = {
  CREATED: ['operation.create'],
  AWAITING_APPROVAL: ['operation.status'],
  APPROVED: [],
  PROCESSING: [],
  UPLOADING: ['upload.initiate', 'upload.chunk', 'upload.complete'],
};

/** In the states that call the platform every other kill falls together with answers that are lost until then: the work is done, and nobody was told. */
function lostAnswer(state: KillState, random: () => number): string | undefined {
  const endpoints = droppable[state];
  return random() < 0.5 ? endpoints[Math.floor(random() * endpoints.length)] : undefined;
}

function faultsFor(lost: string | undefined): DrillFault[] {
  return [...(lost ? [{ endpoint: lost, times: slowedCalls, effect: { dropResponse: true } } as const] : []), ...slow];
}
