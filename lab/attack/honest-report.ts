/** A report of certify as an app without a fault would get it, made without running one. */
import { judge, rulesOf } from '../../src/sandbox/referee/verdict.ts';
import { assumedLimits } from '../../src/contract/index.ts';
import {
  digestOfTrace,
  mergeRules,
  resultOfScenario,
  summarize,
  type ExpectedFailure,
  type Report,
  type ScenarioReport,
} from '../../src/commands/certify/report.ts';
import { judged } from '../../src/commands/certify/recheck.ts';
import { planVersion, scenarios, type Scenario } from '../../src/commands/certify/scenarios.ts';
import type { TracedCall } from '../../src/commands/certify/watched-launch.ts';

export const app = 'http://app.example/launch';
const startedAt = new Date('2026-11-01T12:00:00Z');
const finishedAt = new Date('2026-11-01T12:10:00Z');

interface MadeCall {
  readonly atMs: number;
  readonly endpoint: TracedCall['endpoint'];
  readonly detail?: Record<string, unknown>;
}

const poll = (atMs: number, operationId: string, operationStatus: string): MadeCall => ({
  atMs,
  endpoint: 'operation.status',
  detail: { operationId, operationStatus },
});

/** One launch: an operation that is rejected, then one that is approved, and its upload in three parts. */
const calls: readonly MadeCall[] = [
  { atMs: 0, endpoint: 'token.renew' },
  { atMs: 10, endpoint: 'user.detail' },
  { atMs: 20, endpoint: 'operation.create', detail: { operationId: 'first' } },
  poll(2_600, 'first', 'REQUESTED'),
  poll(5_200, 'first', 'REJECTED'),
  { atMs: 5_300, endpoint: 'operation.create', detail: { operationId: 'second' } },
  poll(7_900, 'second', 'REQUESTED'),
  poll(10_500, 'second', 'REQUESTED'),
  poll(13_100, 'second', 'APPROVED'),
  ...(['upload.initiate', 'upload.chunk', 'upload.chunk', 'upload.chunk', 'upload.complete'] as const).map(
    (endpoint, i) => ({
      atMs: 13_200 + 100 * i,
      endpoint,
      detail: {
        ...{ operationId: 'second', operationStatus: 'APPROVED', uploadId: 'u', key: 'k' },
        ...(endpoint === 'upload.chunk' && { partNumber: i, size: 10 }),
        ...(endpoint === 'upload.complete' && { fileSize: 30, fileId: 'f' }),
      },
    }),
  ),
];

function traceOf({ faults = [] }: Scenario): TracedCall[] {
  const left = faults.flatMap(({ endpoint, effect, times = 1 }) => Array.from({ length: times }, () => ({ endpoint, effect }))); // oxfmt-ignore
  return calls.map(({ atMs, endpoint, detail = {} }, i) => {
    const at = new Date(startedAt.getTime() + atMs).toISOString();
    const struck = left.findIndex((fault) => fault.endpoint === endpoint);
    const [fault] = struck < 0 ? [] : left.splice(struck, 1);
    return {
      ...{
        id: i + 1,
        at,
        launchAt: at,
        endpoint,
        method: 'POST',
        path: '/',
        status: 200,
        durationMs: 5,
        delivered: true,
      },
      ...{
        requestBytes: 0,
        responseBytes: 0,
        request: { headers: {}, body: null },
        response: { headers: {}, body: null },
      },
      detail: { tokenNumber: 1, ...detail, ...(fault && { fault: fault.effect }) },
    };
  });
}

/** A scenario whose traces are given; default: those of an app without a fault. */
export function scenarioReport(scenario: Scenario, trace: readonly TracedCall[] = traceOf(scenario)): ScenarioReport {
  const launches = Array.from({ length: scenario.launches ?? 1 }, (_, i) => ({
    ...{ launchId: `launch-${i}`, sha256: digestOfTrace(trace), calls: trace, acts: [], cutCalls: 0 },
  }));
  const verdicts = launches.map(({ launchId }) => ({
    launchId,
    appId: 'app',
    ...judge(trace.map(judged), undefined, rulesOf(assumedLimits)),
  }));
  const rules = mergeRules(verdicts);
  const faults = (scenario.faults ?? []).map(({ endpoint, effect, times = 1 }) => ({
    ...{ endpoint, effect, times },
    fired: Math.min(times, trace.filter((call) => call.endpoint === endpoint && call.detail['fault'] !== undefined).length * launches.length),
  })); // oxfmt-ignore
  return {
    ...{ id: scenario.id, title: scenario.title, level: scenario.level, appName: 'Honest', status: 'FINISHED' },
    ...{ missing: null, faults, rules, advisories: mergeRules(verdicts, 'advisories'), launches },
    result: resultOfScenario({ rules, missing: null, faults }),
  };
}

export function summaryOf(
  reports: readonly ScenarioReport[],
  { expected = [] }: { readonly expected?: readonly ExpectedFailure[] } = {},
): Report {
  return summarize(reports, { app, planVersion, startedAt, finishedAt, expected });
}

export const honestReport = (): Report => summaryOf(scenarios.map((scenario) => scenarioReport(scenario)));

/** A trace with an upload call before the approval. */
export const early = (scenario: Scenario): TracedCall[] =>
  traceOf(scenario).map((call) =>
    call.endpoint === 'upload.initiate' ? { ...call, at: new Date(startedAt.getTime() + 6_000).toISOString() } : call,
  );
