/** Judges the traces in a report again. The result and the level in the head of a report are claims, even in a signed one. */
import { isDeepStrictEqual } from 'node:util';
import { assumedLimits } from '../../contract/index.ts';
import type { TracedCall as JudgedCall } from '../../sandbox/referee/traced-call.ts';
import { judge, nothingMissing, rulesOf } from '../../sandbox/referee/verdict.ts';
import { challengePlan } from './challenge.ts';
import {
  mergeRules,
  resultOfScenario,
  summarize,
  type ExpectedFailure,
  type Report,
  type ScenarioReport,
} from './report.ts';
import { planVersion, scenariosOf, type Scenario } from './scenarios.ts';
import type { TracedCall } from './watched-launch.ts';

/** Reason why a report cannot come of the traces that it holds; null if it can. */
export function contradiction(report: Report): string | null {
  if (report.planVersion !== planVersion)
    return `it is of the plan ${report.planVersion}, which this certify does not know; it knows ${planVersion}`;
  const plan = planOf(report);
  if (plan === null) return 'its challenge is not the one that the seed draws';
  const ids = report.scenarios.map(({ id }) => id);
  if (new Set(ids).size < ids.length) return 'it has a scenario twice';
  for (const scenario of report.scenarios) {
    const found = contradictionIn(scenario, plan, report);
    if (found !== null) return `scenario ${scenario.id}: ${found}`;
  }
  const again = summarize(report.scenarios, {
    app: report.app,
    planVersion,
    limits: report.limits,
    startedAt: new Date(report.startedAt),
    finishedAt: new Date(report.finishedAt),
    expected: expectedIn(report),
    challenge: report.challenge,
    permissions: report.permissions,
  });
  for (const field of ['status', 'result', 'level', 'rules', 'appName', 'expected', 'tracesSha256'] as const)
    if (!isSame(again[field], report[field]))
      return `its ${field} is not what its scenarios amount to (${shortened(report[field])} for ${shortened(again[field])})`;
  return null;
}

/** The plan that the report says it is of. Null if its challenge cannot be drawn from its seed. */
function planOf({ challenge, scenarios }: Report): readonly Scenario[] | null {
  const isRestarted = scenarios.some(({ id }) => id === 'restarted');
  const plan = scenariosOf(assumedLimits, isRestarted ? () => Promise.resolve() : null);
  if (challenge === null) return plan;
  const draws = [true, false].map((usesItems) => challengePlan(plan, challenge.seed, { usesItems }));
  return draws.find((drawn) => isSame(drawn.challenge, challenge))?.scenarios ?? null;
}

function contradictionIn(scenario: ScenarioReport, plan: readonly Scenario[], { limits }: Report): string | null {
  const planned = plan.find(({ id }) => id === scenario.id);
  if (planned?.level !== scenario.level || planned.title !== scenario.title) return 'the plan has no such scenario';
  const isFinished = scenario.status === 'FINISHED';
  if (isFinished && scenario.missing === null && scenario.launches.length !== (planned.launches ?? 1))
    return `it has ${scenario.launches.length} launches, and the plan ${planned.launches ?? 1}`;
  const verdicts = scenario.launches.map(({ launchId, calls, cutCalls }) => ({
    launchId,
    appId: '',
    ...judge(calls.map(judged), { ...nothingMissing, cutCalls }, rulesOf(limits)),
  }));
  for (const kind of ['rules', 'advisories'] as const) {
    const again = mergeRules(verdicts, kind);
    const facts = (of: ScenarioReport['rules']) =>
      of.map(({ rule, result, violationCount }) => ({ rule, result, violationCount }));
    // Violations of calls that were deleted are known to the sandbox alone.
    const isCut = scenario.launches.some(({ cutCalls }) => cutCalls > 0);
    if (!isCut && !isSame(facts(again), facts(scenario[kind])))
      return `its ${kind} are not what its traces show (${wordsOf(scenario[kind])} for ${wordsOf(again)})`;
  }
  for (const fault of planned.faults ?? [])
    if (
      isFinished &&
      !scenario.faults.some(({ endpoint, effect }) => isSame([endpoint, effect], [fault.endpoint, fault.effect]))
    )
      return `it lacks the plan's fault at ${fault.endpoint}`;
  for (const { endpoint, effect, fired } of scenario.faults)
    if (fired > firedIn(scenario, endpoint, effect)) return `its fault at ${endpoint} did not fire ${fired} times`;
  const result = isFinished ? resultOfScenario(scenario) : 'NOT_EXERCISED';
  return result === scenario.result ? null : `its result is ${result}, not ${scenario.result}`;
}

/** A call of the trace, as the referee judges it. */
export const judged = (call: TracedCall): JudgedCall => {
  const at = Date.parse(call.at);
  // The trace shows an upload call without an operation with null.
  const detail = Object.fromEntries(Object.entries(call.detail).filter(([, value]) => value !== null));
  return { ...call, at, endedAt: at + call.durationMs, detail };
};

function firedIn({ launches }: ScenarioReport, endpoint: string, effect: unknown): number {
  return launches
    .flatMap(({ calls }) => calls)
    .filter((call) => call.endpoint === endpoint && isSame(call.detail['fault'], effect)).length;
}

/** Failures that were expected, from their names in the report. */
const expectedIn = ({ expected }: Report): ExpectedFailure[] =>
  [...expected.met, ...expected.unmet].map((name) => {
    const [scenario = '', rule = ''] = name.split(': ');
    return { scenario, rule };
  });

/** Equal as JSON: a report is read from a file, where what is undefined is absent. */
const isSame = (a: unknown, b: unknown) => isDeepStrictEqual(plain(a), plain(b));
const plain = (value: unknown): unknown => (value === undefined ? null : JSON.parse(JSON.stringify(value)));

const wordsOf = (rules: ScenarioReport['rules']) =>
  rules
    .filter(({ result }) => result !== 'passed')
    .map(({ rule, result }) => `${rule} ${result}`)
    .join(', ') || 'all passed';

const shortened = (value: unknown) => JSON.stringify(value).slice(0, 200);
