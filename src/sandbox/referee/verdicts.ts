import type { Rule } from './rules/rule.ts';
import type { Trace } from './trace.ts';
import { inOrder, type TracedCall } from './traced-call.ts';
import { judge, type Verdict } from './verdict.ts';

/** Limits of the cache: verdicts, and calls of all of them together. The least recently used entries go first. */
const most = { verdicts: 500, calls: 50_000 };

interface Known {
  readonly newestId: number;
  readonly count: number;
  readonly verdict: Verdict;
  /** Oldest first. Null if they were evicted. */
  calls: readonly TracedCall[] | null;
}

/** Caches verdicts, because pages request them often. New calls of a launch renew its verdict, and only these calls are read. */
export class Verdicts {
  #trace: Trace;
  #rules: readonly Rule[];
  #known = new Map<string, Known>();

  constructor(trace: Trace, rules: readonly Rule[]) {
    this.#trace = trace;
    this.#rules = rules;
  }

  /** With the number of calls that it is of. */
  of(launchId: string): { verdict: Verdict; count: number } {
    const { oldestId, newestId } = this.#trace.extent(launchId);
    const known = this.#known.get(launchId);
    if (known?.newestId === newestId) return known;
    const before = (known?.calls ?? []).filter(({ id }) => id >= oldestId);
    const added = this.#trace.calls(launchId, before.length > 0 ? known!.newestId : 0);
    const calls = [...before, ...added];
    // A long call may have begun before known calls.
    if (calls.some((call, i) => i > 0 && inOrder(calls[i - 1]!, call) > 0)) calls.sort(inOrder);
    const verdict = judge(calls, this.#trace.missing(launchId), this.#rules);
    this.#known.delete(launchId);
    this.#known.set(launchId, { newestId, count: calls.length, verdict, calls });
    this.#makeRoom();
    return { verdict, count: calls.length };
  }

  #makeRoom(): void {
    for (const oldest of this.#known.keys()) if (this.#known.size > most.verdicts) this.#known.delete(oldest);
    let room = most.calls;
    for (const one of [...this.#known.values()].reverse()) {
      room -= one.calls?.length ?? 0;
      if (room < 0) one.calls = null;
    }
  }
}
