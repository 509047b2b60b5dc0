import { endpoints } from '../../contract/index.ts';
import type { Operations } from '../external-app/operations.ts';
import type { Launch } from '../identity/launch.ts';
import { brokenCalls, momentsOf, timelineOf, type DrawnCall } from '../referee/timeline.ts';
import type { Trace } from '../referee/trace.ts';
import type { Verdicts } from '../referee/verdicts.ts';

export interface CompareOptions {
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  readonly operations: Pick<Operations, 'names'>;
  /** Removes keys and tokens. */
  readonly redact: <T>(value: T) => T;
}

const maxDrawn = 1_000;

/** Compares two launches: their calls on the same scale, from the first call on, their verdicts, and the number of calls by endpoint. */
export function compareLaunches({ trace, verdicts, operations, redact }: CompareOptions, launches: readonly Launch[]) {
  const drawn = launches.map(({ id }) => trace.drawn(id, 0, Number.MAX_SAFE_INTEGER, maxDrawn));
  const begins = drawn.map((calls, i) => Date.parse(calls[0]?.at ?? '') || (launches[i]?.createdAtMs ?? 0));
  const spanMs = Math.max(1_000, ...drawn.map((calls, i) => endOf(calls) - (begins[i] ?? 0)));
  const names = launches.map(({ id }) => redact(operations.names(id)).map((named) => [named.id, named.name] as const));
  const judged = launches.map(({ id }) => verdicts.of(id).verdict);
  const offsets = drawn.map((calls, i) => {
    const broken = brokenCalls(judged[i]?.rules ?? []);
    return momentsOf(calls, (id) => broken.has(id)).map((ms) => ms - (begins[i] ?? 0));
  });
  const results = judged.map(({ rules, advisories }) => [...rules, ...advisories]);
  return {
    sides: launches.map(({ id }, i) => ({
      id,
      leftOut: trace.count(id) - (drawn[i]?.length ?? 0),
      verdict: judged[i]?.result,
      timeline: timelineOf(drawn[i] ?? [], judged[i]?.rules ?? [], {
        window: { fromMs: begins[i] ?? 0, toMs: (begins[i] ?? 0) + spanMs },
        // Pauses of both are drawn short, so that equal times stand below each other.
        alsoMs: offsets.flat().map((ms) => (begins[i] ?? 0) + ms),
        operations: new Map(names[i]),
      }),
    })),
    rules: (results[0] ?? []).map(({ rule, clause }) => ({
      rule,
      clause,
      results: results.map((all) => all.find((other) => other.rule === rule)?.result ?? 'not_exercised'),
    })),
    endpoints: endpoints
      .map((endpoint) => ({ endpoint, counts: drawn.map((calls) => countOf(calls, endpoint)) }))
      .filter(({ counts }) => counts.some(({ all }) => all > 0)),
  };
}

const endOf = (calls: readonly DrawnCall[]): number =>
  Math.max(0, ...calls.map(({ at, durationMs }) => Date.parse(at) + durationMs));

function countOf(calls: readonly DrawnCall[], endpoint: string): { all: number; failed: number } {
  const ofEndpoint = calls.filter((call) => call.endpoint === endpoint);
  return {
    all: ofEndpoint.length,
    failed: ofEndpoint.filter(({ delivered, status }) => !delivered || (status ?? 0) >= 400).length,
  };
}
