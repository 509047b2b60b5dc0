import { assumedLimits, type WireLimits } from '../../contract/index.ts';
import { iso } from '../clock.ts';
import { chunkOrder } from './rules/chunk-order.ts';
import { noWorkAfterRefusal } from './rules/no-work-after-refusal.ts';
import { pollInterval } from './rules/poll-interval.ts';
import { noDataBeforeApproval } from './rules/no-data-before-approval.ts';
import { oneOperation } from './rules/one-operation.ts';
import { pollStops } from './rules/poll-stops.ts';
import { retryAfter } from './rules/retry-after.ts';
import type { Finding, Rule, Violation } from './rules/rule.ts';
import { tokenScope } from './rules/token-scope.ts';
import { uploadAfterApproval } from './rules/upload-after-approval.ts';
import { uploadIdentity } from './rules/upload-identity.ts';
import { isCreate, type TracedCall } from './traced-call.ts';

/** The protocol of spec 4.8, rule by rule. No two of them judge the same fault. */
export const rulesOf = (limits: Pick<WireLimits, 'pollIntervalMs'>): readonly Rule[] => [
  uploadAfterApproval,
  pollInterval(limits.pollIntervalMs),
  pollStops,
  uploadIdentity,
  chunkOrder,
  noWorkAfterRefusal,
  tokenScope,
];

export const rules = rulesOf(assumedLimits);

/** Habits of well-made apps that the protocol does not explicitly require: separate from the rules, and not part of the result. */
export const advisories: readonly Rule[] = [noDataBeforeApproval, oneOperation, retryAfter];

export const results = ['passed', 'warning', 'failed', 'not_exercised'] as const;
export type Result = (typeof results)[number];

/** Violations that are told of one rule; `violationCount` counts them all. */
const maxTold = 50;

/** Gaps in the calls of a launch. Violations that depend on missing calls do not count. */
export interface Missing {
  /** Times in epoch ms, oldest first. Some calls before each of them may be missing. */
  readonly gaps: readonly number[];
  /** Number of the oldest calls that were deleted for want of room. What is left is not the whole: nothing passes by it. */
  readonly cutCalls: number;
  /** Violations that were found before their calls were deleted. */
  readonly kept: readonly KeptViolation[];
}
export const nothingMissing: Missing = { gaps: [], cutCalls: 0, kept: [] };

export type ViolationView = ReturnType<typeof view>;
export interface KeptViolation {
  readonly rule: string;
  readonly violation: ViolationView;
}

/** Judges a launch by its calls, oldest first. A rule without calls to judge is `not_exercised`, not `passed`. */
export function judge(calls: readonly TracedCall[], { gaps, cutCalls, kept }: Missing = nothingMissing, by = rules) {
  const isCut = cutCalls > 0;
  /** By operation; of the launch where a call does not say its own. */
  const beganAt = new Map<string | undefined, number>();
  for (const call of calls)
    for (const id of [undefined, call.detail.operationId])
      if (!beganAt.has(id)) beganAt.set(id, isCut && (id === undefined || !isCreate(call)) ? -Infinity : call.at);
  const isSureOf = ({ at, detail }: TracedCall) => {
    const began = beganAt.get(detail.operationId) ?? Infinity;
    if (began === -Infinity) return false;
    const gap = gaps[firstFrom(gaps, began)];
    return gap === undefined || gap > at;
  };
  const isSure = (violation: Violation) => violation.calls.every(isSureOf);
  const judgedBy = (rule: Rule) => {
    const found = rule.judge(calls);
    const finding = rule.needsAllBefore ? { ...found, violations: found.violations.filter(isSure) } : found;
    const own = finding.violations.map((violation) => view(violation, rule));
    const ofCalls = new Set(own.map(keyOfViolation));
    const earlier = kept
      .filter(
        (keptViolation) => keptViolation.rule === rule.id && !ofCalls.has(keyOfViolation(keptViolation.violation)),
      )
      .map(({ violation }) => violation);
    const violations = [...earlier, ...own];
    const result = resultOf({ ...finding, violations });
    return {
      rule: rule.id,
      clause: rule.clause,
      holds: rule.holds,
      result: isCut && result === 'passed' ? ('not_exercised' as const) : result,
      violations: violations.slice(0, maxTold),
      violationCount: violations.length,
      ...(finding.note !== undefined && { note: finding.note }),
    };
  };
  const judged = by.map(judgedBy);
  const overall = worst(judged.map(({ result }) => result));
  return {
    result: isCut && overall !== 'failed' ? ('not_exercised' as const) : overall,
    cutCalls,
    rules: judged,
    advisories: advisories.map(judgedBy),
  };
}

/** Names a violation by its calls: a rule finds the same one again as long as they are there. */
export const keyOfViolation = ({ calls }: ViolationView): string => calls.map(({ id }) => id).join(' ');

export type Verdict = ReturnType<typeof judge>;

/** Returns the index of the first number that is at least `least` in an ascending list, or the length of the list. */
function firstFrom(ascending: readonly number[], least: number): number {
  let [from, to] = [0, ascending.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ascending[middle] ?? Infinity) < least) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Failed before warning before passed; `not_exercised` where nothing was. */
export function worst(all: readonly Result[]): Result {
  return (['failed', 'warning', 'passed'] as const).find((result) => all.includes(result)) ?? 'not_exercised';
}

function resultOf({
  isExercised,
  violations,
}: Pick<Finding, 'isExercised'> & { readonly violations: readonly Pick<Violation, 'severity'>[] }): Result {
  if (violations.some(({ severity }) => severity === 'failed')) return 'failed';
  if (violations.length > 0) return 'warning';
  return isExercised ? 'passed' : 'not_exercised';
}

function view({ severity, calls, seen, expected, advice }: Violation, rule: Rule) {
  return {
    severity,
    calls: calls.map(({ id, at, endpoint, status }) => ({ id, at: iso(at), endpoint, status })),
    seen,
    expected,
    advice: advice ?? rule.advice,
  };
}
