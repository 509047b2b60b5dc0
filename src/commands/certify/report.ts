import { createHash } from 'node:crypto';
import { assumedLimits, type WireLimits } from '../../contract/index.ts';
import type { KeyUse } from '../../sandbox/identity/api-keys.ts';
import { worst, type Result } from '../../sandbox/referee/verdict.ts';
import { levels, scenarios as published, type Level, type Scenario } from './scenarios.ts';
import type { Challenge } from './challenge.ts';
import type { LaunchVerdict, PlanAct, TracedCall } from './watched-launch.ts';

/** Progress of a scenario or the plan. Findings are apart from it. */
export type Status = 'WAITING' | 'RUNNING' | 'FINISHED' | 'INTERRUPTED';
export type Outcome = 'PASSED' | 'WARNING' | 'FAILED' | 'NOT_EXERCISED';

export interface RuleInScenario {
  readonly rule: string;
  readonly clause: string;
  readonly holds: string;
  readonly result: Result;
  readonly violations: LaunchVerdict['rules'][number]['violations'];
  readonly violationCount: number;
  /** Explains which checks were left out because the machine was too slow. */
  readonly note?: string;
}

export interface ScenarioReport {
  readonly id: string;
  readonly title: string;
  readonly level: Level;
  /** Name that the app gives itself on the page of a launch; null if no page came. */
  readonly appName: string | null;
  readonly status: Status;
  readonly result: Outcome;
  /** Event that the scenario waited for in vain; null if everything came. */
  readonly missing: { readonly severity: 'failed' | 'warning'; readonly message: string } | null;
  readonly faults: readonly {
    readonly endpoint: string;
    readonly effect: unknown;
    readonly times: number;
    readonly fired: number;
  }[];
  readonly rules: readonly RuleInScenario[];
  /** Rules that well-made apps follow besides. They do not count for the result. */
  readonly advisories: readonly RuleInScenario[];
  readonly launches: readonly {
    readonly launchId: string;
    readonly sha256: string;
    readonly calls: readonly TracedCall[];
    readonly acts: readonly PlanAct[];
    /** Calls that are not in `calls`, for want of room. */
    readonly cutCalls: number;
  }[];
}

export interface Report {
  readonly format: 'marketplace-app-certification/2';
  readonly planVersion: string;
  /** Limits of the platform that the rules were judged by. */
  readonly limits: Pick<WireLimits, 'pollIntervalMs'>;
  /** Its launch address. */
  readonly app: string;
  /** Address of the platform in front of which the launches were observed. Absent if the certifier led them on its own sandbox. */
  readonly platform?: string;
  readonly appName: string | null;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly status: Status;
  readonly result: Outcome;
  /** The highest whose scenarios, and those below it, all came to their end; null where the app does not keep the protocol. */
  readonly level: Level | null;
  /** Parts of the plan that a seed decided; null for the published plan. */
  readonly challenge: Challenge | null;
  /** The worst of each rule over all scenarios, and the scenarios that exercised it. */
  readonly rules: readonly {
    readonly rule: string;
    readonly clause: string;
    readonly result: Outcome;
    readonly exercisedIn: readonly string[];
    readonly failedIn: readonly string[];
  }[];
  /** Permissions of the app's key, and those that its calls needed. Absent in reports of earlier releases. */
  readonly permissions?: KeyUse;
  readonly expected: { readonly met: readonly string[]; readonly unmet: readonly string[] };
  readonly scenarios: readonly ScenarioReport[];
  /** SHA-256 of the digests of all traces, in the order of the scenarios. */
  readonly tracesSha256: string;
  readonly signature?: Signature;
}

/** A JWS in its flattened form (RFC 7515, 7.2.2), the payload detached: the report without its signature. */
export interface Signature {
  /** Names the algorithm, EdDSA, and the public key (`jwk`). */
  readonly protected: string;
  readonly signature: string;
}

// Outcomes are the results in capitals, which the types of both methods leave out.
const outcomeOf = (result: Result): Outcome => result.toUpperCase() as Outcome;
const resultOf = (outcome: Outcome): Result => outcome.toLowerCase() as Result;

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Digest of the calls of one launch. */
export const digestOfTrace = (calls: readonly TracedCall[]): string => sha256(JSON.stringify(calls));
export const digestOfTraces = (scenarios: readonly ScenarioReport[]): string =>
  sha256(scenarios.flatMap(({ launches }) => launches.map((launch) => launch.sha256)).join('\n'));

/** The verdicts of a scenario's launches as one. */
export function mergeRules(
  verdicts: readonly LaunchVerdict[],
  kind: 'rules' | 'advisories' = 'rules',
): RuleInScenario[] {
  const [first] = verdicts;
  return (first?.[kind] ?? []).map(({ rule, clause, holds }) => {
    const all = verdicts.flatMap((verdict) => verdict[kind].filter((finding) => finding.rule === rule));
    const note = all.find((finding) => finding.note !== undefined)?.note;
    return {
      rule,
      clause,
      holds,
      ...(note !== undefined && { note }),
      result: worst(all.map(({ result }) => result)),
      violations: all.flatMap(({ violations }) => violations),
      violationCount: all.reduce((sum, { violationCount }) => sum + violationCount, 0),
    };
  });
}

/** The scenario's result: its rules, and what did not come. A fault that never fired leaves nothing to say. */
export function resultOfScenario({
  rules,
  missing,
  faults,
}: Pick<ScenarioReport, 'rules' | 'missing' | 'faults'>): Outcome {
  const found = worst([...rules.map(({ result }) => result), ...(missing === null ? [] : [missing.severity])]);
  if (found === 'passed' && faults.some(({ fired, times }) => fired < times)) return 'NOT_EXERCISED';
  return outcomeOf(found);
}

/** A failure that the user has named beforehand. `*` is any scenario, and `outcome` a missing delivery. */
export interface ExpectedFailure {
  readonly scenario: string;
  readonly rule: string;
}

/** Puts the scenarios together. An expected failure does not count; one that did not happen does. */
export function summarize(
  scenarios: readonly ScenarioReport[],
  facts: {
    app: string;
    planVersion: string;
    /** Default: the contract's. */
    limits?: Pick<WireLimits, 'pollIntervalMs'>;
    startedAt: Date;
    finishedAt: Date;
    expected: readonly ExpectedFailure[];
    challenge?: Challenge | null;
    /** Default: not looked at. */
    permissions?: KeyUse | null | undefined;
    /** The plan that a level asks for. Default: the published one. */
    plan?: readonly Pick<Scenario, 'id' | 'level'>[];
  },
): Report {
  const isExpected = (scenario: string, rule: string) =>
    facts.expected.some(
      (expectedFailure) =>
        (expectedFailure.scenario === '*' || expectedFailure.scenario === scenario) && expectedFailure.rule === rule,
    );
  const names = scenarios.find(({ rules }) => rules.length > 0)?.rules ?? [];
  const rules = names.map(({ rule, clause }) => {
    const seen = scenarios.flatMap((scenario) =>
      scenario.rules
        .filter((finding) => finding.rule === rule)
        .map((finding) => ({ id: scenario.id, result: finding.result })),
    );
    const counted = seen.filter(({ id, result }) => !(result === 'failed' && isExpected(id, rule)));
    const failedIn = seen.filter(({ result }) => result === 'failed').map(({ id }) => id);
    const result =
      counted.length < seen.length && worst(counted.map((scenario) => scenario.result)) === 'not_exercised'
        ? 'passed'
        : worst(counted.map((scenario) => scenario.result));
    return {
      rule,
      clause,
      result: outcomeOf(result),
      exercisedIn: seen.filter((scenario) => scenario.result !== 'not_exercised').map(({ id }) => id),
      failedIn,
    };
  });
  const failures = scenarios.flatMap(({ id, rules: judged, missing }) => [
    ...judged.filter(({ result }) => result === 'failed').map(({ rule }) => ({ scenario: id, rule })),
    ...(missing?.severity === 'failed' ? [{ scenario: id, rule: 'outcome' }] : []),
  ]);
  const name = ({ scenario, rule }: ExpectedFailure) => `${scenario}: ${rule}`;
  const happened = (expectedFailure: ExpectedFailure) =>
    failures.some(
      (failure) =>
        failure.rule === expectedFailure.rule &&
        (expectedFailure.scenario === '*' || expectedFailure.scenario === failure.scenario),
    );
  const unmet = facts.expected.filter((expectedFailure) => !happened(expectedFailure)).map(name);
  const missing = scenarios.flatMap((scenario): Result[] =>
    scenario.missing === null || isExpected(scenario.id, 'outcome') ? [] : [scenario.missing.severity],
  );
  const isInterrupted = scenarios.some(({ status }) => status !== 'FINISHED');
  const overall = worst([
    ...rules.map(({ result }) => resultOf(result)),
    ...missing,
    ...(unmet.length > 0 ? (['failed'] as const) : []),
    // The platform refuses such calls.
    ...((facts.permissions?.denied.length ?? 0) > 0 ? (['failed'] as const) : []),
  ]);
  // Evidence that was cut is not the whole.
  const isCut = scenarios.some(({ launches }) => launches.some(({ cutCalls }) => cutCalls > 0));
  const isWhole = !isCut && names.length > 0 && rules.every(({ result }) => result !== 'NOT_EXERCISED');
  const result = overall !== 'failed' && !isWhole ? ('NOT_EXERCISED' as const) : outcomeOf(overall);
  return {
    format: 'marketplace-app-certification/2',
    planVersion: facts.planVersion,
    limits: { pollIntervalMs: (facts.limits ?? assumedLimits).pollIntervalMs },
    app: facts.app,
    appName: scenarios.find((scenario) => scenario.appName !== null)?.appName ?? null,
    startedAt: facts.startedAt.toISOString(),
    finishedAt: facts.finishedAt.toISOString(),
    status: isInterrupted ? 'INTERRUPTED' : 'FINISHED',
    result,
    level:
      isInterrupted || result === 'FAILED' || result === 'NOT_EXERCISED'
        ? null
        : levelOf(scenarios, facts.plan ?? published),
    challenge: facts.challenge ?? null,
    rules,
    ...(facts.permissions && { permissions: facts.permissions }),
    expected: { met: facts.expected.filter(happened).map(name), unmet },
    scenarios,
    tracesSha256: digestOfTraces(scenarios),
  };
}

/** Permissions that a key has and that no call needed. */
export const neverUsed = ({ granted, used }: Pick<KeyUse, 'granted' | 'used'>) =>
  granted.filter((permission) => !used.includes(permission));

/** A level is reached where each of the plan's scenarios of it came to its end, with its faults. */
function levelOf(scenarios: readonly ScenarioReport[], plan: readonly Pick<Scenario, 'id' | 'level'>[]): Level | null {
  const isShown = (level: Level) => {
    const own = scenarios.filter((scenario) => scenario.level === level);
    return (
      own.length > 0 &&
      plan.every((wanted) => wanted.level !== level || own.some(({ id }) => id === wanted.id)) &&
      own.every(({ result, missing }) => missing === null && (result === 'PASSED' || result === 'WARNING'))
    );
  };
  const missed = levels.findIndex((level) => !isShown(level));
  return missed === 0 ? null : (levels[(missed === -1 ? levels.length : missed) - 1] ?? null);
}

/** 0 only where nothing failed, every rule was exercised, and the level that is demanded was reached. */
export function exitStatusOf({ status, result, level }: Report, demanded: Level | null = null): number {
  if (status !== 'FINISHED' || (result !== 'PASSED' && result !== 'WARNING')) return 1;
  return demanded === null || (level !== null && levels.indexOf(level) >= levels.indexOf(demanded)) ? 0 : 1;
}
