import { assumedLimits, type WireLimits } from '../../contract/index.ts';
import type { FaultEffect, FaultEndpoint, WatchedLaunch } from './watched-launch.ts';

/**
 * Levels of an app. `protocol`: it does what the protocol demands. `robust`: it holds if answers are lost, late or failing.
 * `exemplary`: it holds if it is restarted and held back.
 */
export const levels = ['protocol', 'robust', 'exemplary'] as const;
export type Level = (typeof levels)[number];

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** The level that it shows. */
  readonly level: Level;
  /** It strikes the whole app, so it comes when the others have ended. Default false. */
  readonly isAlone?: boolean;
  /** Delay of its begin after that of the plan. Default: 0. */
  readonly startMs?: number;
  /** Number of the user who launches first, and number of the plan's item. Default 0. */
  readonly user?: number;
  readonly item?: number;
  /** Launches of as many users at once. Default 1. */
  readonly launches?: number;
  readonly renewPolicy?: 'extend' | 'rotate';
  /** Age of the identity token when the app gets it. Default 0. */
  readonly tokenAgeMs?: number;
  /** Armed before the app is opened. */
  readonly faults?: readonly {
    readonly endpoint: FaultEndpoint;
    readonly effect: FaultEffect;
    readonly after?: number;
    readonly times?: number;
  }[];
  /** Severity if the app misses an awaited event: `failed` if the protocol demands it, `warning` if well-made apps reach it. */
  readonly missing: 'failed' | 'warning';
  act(launch: WatchedLaunch): Promise<void>;
}

/** Changes whenever scenarios, rules or advisories do: reports of different plans say different things. */
export const planVersion = '1.2.0';

const minute = 60_000;
/** The acts that scenarios share. Their times follow from the limits of the platform. */
function actsFor({ pollIntervalMs, operationWindowMs, tokenLifetimeMs }: WireLimits) {
  /** Long enough for two more polls, of which one would be a re-read. */
  const watchMs = 2 * pollIntervalMs.max + 1_000;
  /** Shortly before the operation expires. */
  const lateMs = (operationWindowMs * 5) / 6;
  const tokenAgeMs = Math.max(0, tokenLifetimeMs - 10 * minute);

  async function approveAndFollow(launch: WatchedLaunch): Promise<void> {
    await launch.approve();
    await launch.told('APPROVED');
    await Promise.all([launch.delivered(), launch.watch(watchMs)]);
  }
  async function expire(launch: WatchedLaunch): Promise<void> {
    await launch.polls(1);
    await launch.advance(operationWindowMs + minute);
    await launch.told('EXPIRED');
  }
  async function outliveToken(launch: WatchedLaunch): Promise<void> {
    await launch.polls(1);
    await launch.advance(Math.min(11 * minute, tokenLifetimeMs + minute));
    await launch.polls(2);
    await approveAndFollow(launch);
  }
  const withFaults = (launch: WatchedLaunch) => launch.polls(1).then(() => approveAndFollow(launch));

  return { watchMs, lateMs, tokenAgeMs, approveAndFollow, expire, outliveToken, withFaults };
}

type Acts = ReturnType<typeof actsFor>;

/** Scenarios of the decision: what the protocol demands. */
const ofProtocol = ({ watchMs, lateMs, approveAndFollow, expire }: Acts): readonly Scenario[] => [
  {
    id: 'approve-at-once',
    level: 'protocol',
    title: 'The user approves at once',
    missing: 'failed',
    act: approveAndFollow,
  },
  {
    id: 'approve-late',
    level: 'protocol',
    title: `The user approves after ${Math.round(lateMs / minute)} minutes`,
    missing: 'failed',
    async act(launch) {
      await launch.polls(3);
      await launch.advance(lateMs);
      await launch.polls(1);
      await approveAndFollow(launch);
    },
  },
  {
    id: 'reject',
    level: 'protocol',
    title: 'The user rejects: nothing may come',
    missing: 'failed',
    async act(launch) {
      await launch.polls(1);
      await launch.reject();
      await launch.told('REJECTED');
      await launch.watch(watchMs);
    },
  },
  {
    id: 'never-answered',
    level: 'protocol',
    title: 'Nobody decides, and the operation expires: nothing may come',
    missing: 'failed',
    async act(launch) {
      await expire(launch);
      await launch.watch(watchMs);
    },
  },
  {
    id: 'approve-after-expiry',
    level: 'protocol',
    title: 'The user approves when it is too late: nothing may come',
    missing: 'failed',
    async act(launch) {
      await expire(launch);
      if (!(await launch.isApprovalRefused())) throw new Error('the sandbox took an approval after the expiry');
      await launch.watch(watchMs);
    },
  },
];

/** Scenarios of tokens, faults and lost answers. */
const ofRobustness = ({
  watchMs,
  tokenAgeMs,
  approveAndFollow,
  outliveToken,
  withFaults,
}: Acts): readonly Scenario[] => [
  {
    id: 'token-expires-extend',
    level: 'robust',
    title: 'The token ends while the app waits; renewal gives it more time',
    missing: 'warning',
    renewPolicy: 'extend',
    tokenAgeMs,
    act: outliveToken,
  },
  {
    id: 'token-expires-rotate',
    level: 'robust',
    title: 'The token ends while the app waits; renewal gives another one',
    missing: 'warning',
    renewPolicy: 'rotate',
    tokenAgeMs,
    act: outliveToken,
  },
  {
    id: 'token-revoked',
    level: 'robust',
    title: 'The token is revoked while the app waits: it stops asking',
    missing: 'warning',
    async act(launch) {
      await launch.polls(1);
      await launch.revoke();
      await launch.watch(watchMs);
      await launch.refusedAtMost(3);
    },
  },
  {
    id: 'status-fails',
    level: 'robust',
    title: 'The status call fails twice, then asks to wait',
    missing: 'warning',
    faults: [
      { endpoint: 'operation.status', effect: { status: 500 }, after: 1, times: 2 },
      { endpoint: 'operation.status', effect: { status: 503, retryAfterSeconds: 2 }, after: 3 },
    ],
    act: (launch) => launch.polls(2).then(() => approveAndFollow(launch)),
  },
  {
    id: 'chunk-cut',
    level: 'robust',
    title: 'The connection is cut in the middle of a chunk',
    missing: 'warning',
    faults: [{ endpoint: 'upload.chunk', effect: { reset: true } }],
    act: withFaults,
  },
  {
    id: 'chunk-answer-lost',
    level: 'robust',
    title: 'The answer to a chunk is lost',
    missing: 'warning',
    faults: [{ endpoint: 'upload.chunk', effect: { dropResponse: true } }],
    act: withFaults,
  },
  {
    id: 'complete-answer-lost',
    level: 'robust',
    title: 'The answer to complete is lost',
    missing: 'warning',
    faults: [{ endpoint: 'upload.complete', effect: { dropResponse: true } }],
    act: withFaults,
  },
  {
    id: 'slow-answers',
    level: 'robust',
    title: 'Answers take their time',
    missing: 'warning',
    faults: [
      { endpoint: 'operation.status', effect: { delayMs: 3_000 }, times: 2 },
      { endpoint: 'upload.chunk', effect: { delayMs: 2_000 } },
    ],
    act: withFaults,
  },
  {
    id: 'user-detail-fails',
    level: 'robust',
    title: 'The user details fail at first',
    missing: 'warning',
    faults: [{ endpoint: 'user.detail', effect: { status: 500 } }],
    act: approveAndFollow,
  },
];

/** Scenarios that well-made apps pass. `restart` restarts the app under test. */
const ofExemplary = (
  { approveAndFollow, withFaults }: Acts,
  restart: (() => Promise<void>) | null,
): readonly Scenario[] => [
  {
    id: 'rate-limited',
    level: 'exemplary',
    title: 'The platform asks to wait: 429 with Retry-After',
    missing: 'warning',
    faults: [
      { endpoint: 'operation.status', effect: { status: 429, retryAfterSeconds: 7 }, after: 1 },
      { endpoint: 'upload.chunk', effect: { status: 429, retryAfterSeconds: 3 } },
    ],
    async act(launch) {
      await withFaults(launch);
      await launch.obeyed('retry-after');
    },
  },
  ...(restart
    ? [
        {
          id: 'restarted',
          level: 'exemplary' as const,
          isAlone: true,
          title: 'The app is restarted while it waits, and goes on',
          missing: 'warning' as const,
          async act(launch: WatchedLaunch) {
            await launch.polls(1);
            await restart();
            await approveAndFollow(launch);
          },
        },
      ]
    : []),
];

/** The plan for a platform with these limits. `restart`: restarts the app under test; without it nobody knows how it takes that. */
export function scenariosOf(limits: WireLimits, restart: (() => Promise<void>) | null = null): readonly Scenario[] {
  const acts = actsFor(limits);
  return [
    ...ofProtocol(acts),
    ...ofRobustness(acts),
    ...ofExemplary(acts, restart),
    {
      id: 'two-users',
      level: 'protocol',
      title: 'Two users launch the app at once',
      missing: 'failed',
      launches: 2,
      act: acts.withFaults,
    },
  ];
}

/** The plan for the contract's own limits. */
export const scenarios = scenariosOf(assumedLimits);
