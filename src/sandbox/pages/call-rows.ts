import { isIdlePoll } from '../referee/traced-call.ts';

/** Data of a call for the list of the inspector. `at` is ISO 8601. */
export interface ListedCall {
  readonly id: number;
  readonly at: string;
  readonly durationMs: number;
  readonly endpoint: string;
  readonly path: string;
  readonly status: number | null;
  readonly delivered: boolean;
  readonly detail: { readonly [name: string]: unknown };
  readonly request: { readonly headers: Readonly<Record<string, string>> };
  /** The rule that it breaks. */
  readonly breaks: string | null;
  /** The fault that it met, in words. */
  readonly fault: string | null;
}

/** A line of the list: one call, the attempts at one call, or polls in a row that brought no news. */
export interface CallRow<Call extends ListedCall> {
  readonly kind: 'call' | 'attempts' | 'polls';
  /** Oldest first. */
  readonly calls: readonly Call[];
}

/** Statuses after which a client makes the same call again. 5xx are the others. */
const repeatedStatuses: ReadonlySet<number> = new Set([408, 429]);

const hasFailed = ({ delivered, status }: ListedCall): boolean =>
  !delivered || status === null || status >= 500 || repeatedStatuses.has(status);

/** Attempts at one call have the same path and idempotency key, and the same upload and part, if they name them. */
const subjectOf = ({ endpoint, path, detail, request }: ListedCall): string =>
  JSON.stringify([
    ...[endpoint, path, request.headers['idempotency-key'] ?? null, detail['partNumber'] ?? null],
    // The answer of an initiation names its upload, which a lost one has not.
    endpoint.endsWith('.initiate') ? null : (detail['uploadId'] ?? null),
  ]);

/** Joins attempts at one call, and polls without news. Both lists have the newest first; a line has the place of its newest call. */
export function callRows<Call extends ListedCall>(newestFirst: readonly Call[]): CallRow<Call>[] {
  const rows: { kind: CallRow<Call>['kind']; calls: Call[] }[] = [];
  const failed = new Map<string, (typeof rows)[number]>();
  for (const call of newestFirst.toReversed()) {
    const subject = subjectOf(call);
    const earlier = failed.get(subject);
    failed.delete(subject);
    const before = rows.at(-1);
    let row: (typeof rows)[number];
    if (earlier) {
      rows.splice(rows.indexOf(earlier), 1);
      row = { kind: 'attempts', calls: [...earlier.calls, call] };
      rows.push(row);
    } else if (before && isWithoutNews(call) && before.calls.every((other) => isWithoutNews(other, call))) {
      row = before;
      row.kind = 'polls';
      row.calls.push(call);
    } else {
      row = { kind: 'call', calls: [call] };
      rows.push(row);
    }
    if (hasFailed(call)) failed.set(subject, row);
  }
  return rows.toReversed();
}

/** True for a poll that brought no news and breaks no rule, about the same operation as `like`. */
const isWithoutNews = (call: ListedCall, like = call): boolean =>
  isIdlePoll(call) && call.breaks === null && call.detail['operationId'] === like.detail['operationId'];

/** Maximum number of attempts that are described one by one. */
const mostDescribed = 3;

/** The course of the attempts, such as `no answer, again after 0.4 s: 200`. Many are counted by their outcome. */
export function attemptWords(calls: readonly ListedCall[]): string {
  const [first, last] = [calls[0], calls.at(-1)];
  if (calls.length > mostDescribed && first && last) {
    const counts = [...Map.groupBy(calls.slice(0, -1), outcomeOf)].map(
      ([outcome, { length }]) => `${outcome} × ${length}`,
    );
    return `${calls.length} attempts in ${secondsBetween(first, last)} s: ${counts.join(', ')}, then ${outcomeOf(last)}`;
  }
  return calls
    .map((call, i) => {
      const before = calls[i - 1];
      return before ? `again after ${secondsBetween(before, call)} s: ${outcomeOf(call)}` : outcomeOf(call);
    })
    .join(', ');
}

function outcomeOf({ delivered, status, fault }: ListedCall): string {
  const answer = delivered ? String(status) : 'no answer';
  return fault === null ? answer : `${answer} (${fault})`;
}

const secondsBetween = (before: ListedCall, after: ListedCall): string =>
  (Math.max(0, Date.parse(after.at) - Date.parse(before.at) - before.durationMs) / 1_000).toFixed(1);
