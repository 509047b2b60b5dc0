import { cameAfter, type TracedCall } from '../traced-call.ts';
import type { Rule, Violation } from './rule.ts';

const toleranceMs = 200;

/** A warning: the interface shows no rate limit (8), HTTP says what the header asks (RFC 9110, 10.2.3). */
export const retryAfter: Rule = {
  id: 'retry-after',
  clause: '8',
  holds: 'after an answer 429 or 503 with Retry-After the same call comes no sooner than it asks',
  advice: 'Read Retry-After of a 429 or 503, and wait that long before the same call.',
  judge(calls) {
    const asked = calls.filter(
      ({ delivered, status, detail }) =>
        delivered && (status === 429 || status === 503) && detail.retryAfterSeconds !== undefined,
    );
    const repeats = withNext(asked, calls);
    const violations = repeats.flatMap(([call, next]): Violation[] => {
      const waitedMs = next.at - call.at;
      const wantedMs = (call.detail.retryAfterSeconds ?? 0) * 1000;
      if (waitedMs >= wantedMs - toleranceMs) return [];
      return [
        {
          severity: 'warning',
          calls: [call, next],
          seen: `the next ${next.endpoint} after ${waitedMs} ms`,
          expected: `at least ${wantedMs} ms, as Retry-After asked`,
        },
      ];
    });
    return { isExercised: repeats.length > 0, violations };
  },
};

/** Finds the nearest later call that repeats a given call. */
class Later {
  /** The nearest call of an endpoint by each id that it names, and by `''` for any id. */
  #naming = new Map<string, TracedCall>();
  /** The nearest call of an endpoint by its narrowest id. */
  #narrowest = new Map<string, TracedCall>();

  /** Adds a call. Calls must be added from the latest to the earliest. */
  add(call: TracedCall): void {
    const ids = ['', ...idsOf(call)].map((id) => `${call.endpoint} ${id}`);
    for (const id of ids) this.#naming.set(id, call);
    this.#narrowest.set(ids.at(-1) ?? '', call);
  }

  /** Returns the nearest call of the same endpoint. Operation, upload and item must be equal if both calls name them. */
  repeatOf(call: TracedCall): TracedCall | undefined {
    const ids = ['', ...idsOf(call)].map((id) => `${call.endpoint} ${id}`);
    // The other call may name more ids or fewer.
    const found = [this.#naming.get(ids.at(-1) ?? ''), ...ids.slice(0, -1).map((id) => this.#narrowest.get(id))];
    return found.filter((exchange) => exchange !== undefined).toSorted((a, b) => a.at - b.at)[0];
  }
}

/** Ids that a call names, from the widest to the narrowest. */
const idsOf = ({ detail: { operationId, uploadId, itemId } }: TracedCall): string[] =>
  [operationId, uploadId, itemId].filter((id) => id !== undefined);

/** Pairs each call with the first call that repeats it after its answer, in one pass from the end. */
function withNext(asked: readonly TracedCall[], calls: readonly TracedCall[]): [TracedCall, TracedCall][] {
  const later = new Later();
  let left = calls.length;
  return asked
    .toSorted((a, b) => b.endedAt - a.endedAt)
    .flatMap((call): [TracedCall, TracedCall][] => {
      for (let last = calls[left - 1]; last && last !== call && cameAfter(last, call); last = calls[left - 1]) {
        later.add(last);
        left -= 1;
      }
      const next = later.repeatOf(call);
      return next ? [[call, next]] : [];
    })
    .toReversed();
}
