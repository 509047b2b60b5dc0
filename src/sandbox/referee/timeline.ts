import { externalAppEndpoints } from '../../contract/index.ts';

const laneHeight = 22;
const top = 12;
const axisHeight = 24;
const labelWidth = 116;
const plotWidth = 760;

/** What a drawing needs of a call; `at` is ISO 8601. */
export interface DrawnCall {
  readonly id: number;
  readonly at: string;
  readonly durationMs: number;
  readonly endpoint: string;
  readonly status: number | null;
  readonly delivered: boolean;
  readonly detail: Readonly<Record<string, unknown>>;
}

interface JudgedRule {
  readonly rule: string;
  readonly violations: readonly { readonly calls: readonly { readonly id: number }[] }[];
}

/** A launch's calls over real time, a lane for each endpoint that was called; null where none was. Lengths are units of the SVG. */
export function timelineOf(calls: readonly DrawnCall[], rules: readonly JudgedRule[]) {
  if (calls.length === 0) return null;
  const broken = new Map(rules.flatMap(({ rule, violations }) => violations.flatMap((violation) => violation.calls.map(({ id }) => [id, rule] as const))));
  const starts = calls.map(({ at }) => Date.parse(at));
  const from = Math.min(...starts);
  const span = Math.max(1_000, ...calls.map(({ durationMs }, i) => starts[i]! + durationMs - from));
  const lanes = externalAppEndpoints.filter((lane) => calls.some(({ endpoint }) => endpoint === lane));
  const x = (ms: number) => labelWidth + (ms / span) * plotWidth;
  const stepMs = stepOf(span);
  return {
    width: labelWidth + plotWidth + 4,
    height: lanes.length * laneHeight + axisHeight,
    ticks: Array.from({ length: Math.floor(span / stepMs) + 1 }, (_, i) => ({ label: `${(i * stepMs) / 1000} s`, x: x(i * stepMs) })),
    lanes: lanes.map((name, i) => ({ name, y: i * laneHeight + top })),
    marks: calls.map((call, i) => ({
      id: call.id,
      x: x(starts[i]! - from),
      y: lanes.findIndex((lane) => lane === call.endpoint) * laneHeight + top,
      width: Math.max(4, (call.durationMs / span) * plotWidth),
      kind: broken.has(call.id) ? 'broken' : !call.delivered ? 'lost' : (call.status ?? 0) >= 400 ? 'refused' : 'fine',
      title: titleOf(call, starts[i]! - from, broken.get(call.id)),
    })),
  };
}

/** At most about ten ticks, at round seconds. */
function stepOf(spanMs: number): number {
  return [1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400].map((seconds) => seconds * 1_000).find((step) => spanMs / step <= 10) ?? 604_800_000;
}

function titleOf({ endpoint, delivered, status, detail }: DrawnCall, afterMs: number, rule: string | undefined): string {
  const shown = (value: unknown, label: string) => (typeof value === 'string' || typeof value === 'number' ? [`${label}${value}`] : []);
  return [`${(afterMs / 1000).toFixed(2)} s`, endpoint, delivered ? String(status) : 'no answer', ...shown(detail['operationStatus'], ''), ...shown(detail['partNumber'], 'part '), ...(detail['fault'] ? ['fault'] : []), ...(rule ? [`breaks ${rule}`] : [])].join('  ');
}
