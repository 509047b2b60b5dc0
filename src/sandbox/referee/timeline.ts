import { endpoints } from '../../contract/index.ts';
import { placeOf, segmentsOf, type Segment } from './time-scale.ts';
import { isIdlePoll } from './traced-call.ts';

const rowHeight = 20;
const groupGap = 8;
const axisHeight = 24;
const labelWidth = 150;
const plotWidth = 1_150;
/** Operations with lanes of their own, the newest; calls of others share one group. */
const maxGroups = 6;

/** Data of a call for a drawing; `at` is ISO 8601. */
export interface DrawnCall {
  readonly id: number;
  readonly at: string;
  readonly durationMs: number;
  readonly endpoint: string;
  readonly status: number | null;
  readonly delivered: boolean;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** An event that is not a call, drawn as a line through all lanes. */
export interface DrawnCause {
  readonly at: string;
  readonly kind: string;
  readonly text: string;
  readonly tone: 'good' | 'bad' | 'plain';
}

interface JudgedRule {
  readonly rule: string;
  readonly violations: readonly { readonly calls: readonly { readonly id: number }[] }[];
}

export interface TimelineOptions {
  readonly causes?: readonly DrawnCause[];
  /** Names of operations, by id. */
  readonly operations?: ReadonlyMap<string, string>;
  /** Time span to show, in epoch milliseconds. Default: all. Lanes and the origin of the ticks do not depend on it. */
  readonly window?: { readonly fromMs: number; readonly toMs: number } | undefined;
  /** Further moments at which something happened, in epoch milliseconds: no pause is drawn short there. Default: none. */
  readonly alsoMs?: readonly number[];
  /** The calls that have lanes, whichever are shown. Default: those that are. */
  readonly lanesOf?: readonly DrawnCall[];
}

/**
 * Calls over real time, with long pauses drawn short: what caused them on top, then the session's own calls, then those of each
 * operation, a lane for each endpoint that was called. Null where there is nothing to draw. Lengths are units of the SVG.
 */
export function timelineOf(
  calls: readonly DrawnCall[],
  rules: readonly JudgedRule[],
  { causes = [], operations = new Map(), window, alsoMs = [], lanesOf = calls }: TimelineOptions = {},
) {
  if (calls.length === 0 && causes.length === 0 && !window) return null;
  const broken = brokenCalls(rules);
  const times = [...calls.flatMap(spanOf), ...causes.map(({ at }) => Date.parse(at))];
  const from = window?.fromMs ?? Math.min(...times);
  const span = Math.max(1_000, (window?.toMs ?? Math.max(...times)) - from);
  const segments = segmentsOf(
    { fromMs: from, toMs: from + span },
    [...momentsOf(calls, (id) => broken.has(id)), ...causes.map(({ at }) => Date.parse(at)), ...alsoMs],
    { x: labelWidth, width: plotWidth },
  );
  const x = (ms: number) => placeOf(segments, ms);
  const isFolded = ({ at }: DrawnCall) =>
    segments.some((part) => part.isFolded && Date.parse(at) > part.fromMs && Date.parse(at) < part.toMs);

  const origin = lanesOf[0] ? Math.min(from, Date.parse(lanesOf[0].at)) : from;
  const groups = groupsOf(lanesOf, operations);
  let y = causes.length > 0 || window ? rowHeight + groupGap : groupGap;
  const laneOf = new Map<string, number>();
  const lanes: { name: string; y: number; isHead: boolean }[] = [];
  const stripes: { y: number; height: number }[] = [];
  for (const { key, title, endpoints } of groups) {
    const top = y;
    if (title !== null) {
      lanes.push({ name: title, y: y + 12, isHead: true });
      y += rowHeight - 4;
    }
    for (const endpoint of endpoints) {
      laneOf.set(`${key} ${endpoint}`, y + rowHeight / 2);
      lanes.push({ name: endpoint, y: y + rowHeight / 2 + 4, isHead: false });
      y += rowHeight;
    }
    stripes.push({ y: top - groupGap / 2, height: y - top + groupGap });
    y += groupGap;
  }
  const groupKey = keyOf(groups.map(({ key }) => key));
  const parts = segments.filter((part) => !part.isFolded);
  const folds = segments.filter((part) => part.isFolded);
  const stepMs = stepOf(parts.reduce((sum, part) => sum + part.toMs - part.fromMs, 0));
  return {
    width: labelWidth + plotWidth + 4,
    height: y + axisHeight,
    plot: { fromMs: from, spanMs: span, segments },
    folds: folds.map((part) => foldOf(part, calls)),
    ticks: parts
      .flatMap(({ fromMs, toMs }) => ticksOf(fromMs - origin, toMs - fromMs, stepMs))
      .map((ms) => ({ label: labelOf(ms, stepMs), x: x(origin + ms) })),
    stripes: stripes.filter((_, i) => i % 2 === 0),
    lanes,
    causes: causes.map((cause) => ({ ...cause, x: x(Date.parse(cause.at)), y: rowHeight / 2 })),
    marks: calls
      .filter((call) => !isFolded(call))
      .map((call) => ({
        id: call.id,
        x: x(Date.parse(call.at)),
        y: laneOf.get(`${groupKey(call)} ${call.endpoint}`) ?? 0,
        width: Math.max(4, x(Date.parse(call.at) + call.durationMs) - x(Date.parse(call.at))),
        kind: broken.has(call.id)
          ? 'broken'
          : !call.delivered
            ? 'lost'
            : (call.status ?? 0) >= 400
              ? 'refused'
              : 'fine',
        isFaulted: call.detail['fault'] !== undefined,
        title: titleOf(call, Date.parse(call.at) - origin, broken.get(call.id)),
      })),
  };
}

/** The rule that each violating call breaks, by the id of the call. */
export const brokenCalls = (rules: readonly JudgedRule[]): ReadonlyMap<number, string> =>
  new Map(
    rules.flatMap(({ rule, violations }) => violations.flatMap(({ calls }) => calls.map(({ id }) => [id, rule]))),
  );

/** The beginnings and ends of calls that brought news, in epoch milliseconds. `isNews`: true for a call that is news in any case. */
export const momentsOf = (calls: readonly DrawnCall[], isNews: (id: number) => boolean = () => false): number[] =>
  calls.filter((call) => isNews(call.id) || !isIdlePoll(call)).flatMap(spanOf);

const spanOf = ({ at, durationMs }: DrawnCall): number[] => [Date.parse(at), Date.parse(at) + durationMs];

/** The words for a pause: its length, and the polls in it. */
function foldOf({ fromMs, toMs, x, width }: Segment, calls: readonly DrawnCall[]) {
  const polls = calls.filter(({ at }) => Date.parse(at) > fromMs && Date.parse(at) < toMs).length;
  const ms = toMs - fromMs;
  const unitMs = ms < 120_000 ? 1_000 : 60_000;
  const length = labelOf(Math.round(ms / unitMs) * unitMs, unitMs);
  return { x, width, label: length, title: `${length}${polls > 0 ? ` with ${polls} polls` : ''} without news` };
}

const session = 'session';
const others = 'others';
const operationOf = ({ detail }: DrawnCall): string =>
  typeof detail['operationId'] === 'string' ? detail['operationId'] : session;
const keyOf = (keys: readonly string[]) => (call: DrawnCall) =>
  keys.includes(operationOf(call)) ? operationOf(call) : others;

/** The session's own calls, then operations as they came; the endpoints of each in the protocol's order. */
function groupsOf(
  calls: readonly DrawnCall[],
  operations: ReadonlyMap<string, string>,
): { key: string; title: string | null; endpoints: string[] }[] {
  const known = [...new Set(calls.map(operationOf))].filter((key) => key !== session);
  const shown = known.slice(-maxGroups);
  const groupKey = keyOf([session, ...shown]);
  const byGroup = Map.groupBy(calls, groupKey);
  const order = [session, others, ...shown].filter((key) => byGroup.has(key));
  const isPlain = order.length === 1 && order[0] === session;
  return order.map((key) => ({
    key,
    title: isPlain
      ? null
      : key === session
        ? 'The session'
        : key === others
          ? `${known.length - shown.length} earlier operations`
          : (operations.get(key) ?? key),
    endpoints: endpoints.filter((endpoint) => byGroup.get(key)?.some((call) => call.endpoint === endpoint)),
  }));
}

/** Round times since the origin that lie within the span. */
function ticksOf(fromMs: number, spanMs: number, stepMs: number): number[] {
  const first = Math.ceil(fromMs / stepMs);
  return Array.from({ length: Math.max(0, Math.floor((fromMs + spanMs) / stepMs) - first + 1) }, (_, i) =>
    Math.round((first + i) * stepMs),
  );
}

/** At most about ten ticks, at round seconds. */
function stepOf(spanMs: number): number {
  return (
    [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400]
      .map((seconds) => seconds * 1_000)
      .find((step) => spanMs / step <= 10) ?? spanMs / 10
  );
}

/** A time in words, with seconds if `stepMs`, the distance of two labels, is less than a minute. */
function labelOf(ms: number, stepMs: number): string {
  if (ms < 120_000 && stepMs < 60_000) return `${ms / 1_000} s`;
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor((ms % 3_600_000) / 60_000)];
  const seconds = (ms % 60_000) / 1_000;
  return [
    ...(hours > 0 ? [`${hours} h`] : []),
    ...(minutes > 0 || hours === 0 ? [`${minutes} min`] : []),
    ...(stepMs < 60_000 && seconds > 0 ? [`${seconds} s`] : []),
  ].join(' ');
}

function titleOf(
  { endpoint, delivered, status, detail }: DrawnCall,
  afterMs: number,
  rule: string | undefined,
): string {
  const shown = (value: unknown, label: string) =>
    typeof value === 'string' || typeof value === 'number' ? [`${label}${value}`] : [];
  return [
    `${(afterMs / 1000).toFixed(2)} s`,
    endpoint,
    delivered ? String(status) : 'no answer',
    ...shown(detail['operationStatus'], ''),
    ...shown(detail['partNumber'], 'part '),
    ...(detail['fault'] ? ['fault'] : []),
    ...(rule ? [`breaks ${rule}`] : []),
  ].join('  ');
}
