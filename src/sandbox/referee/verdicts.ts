import { setImmediate as tick } from 'node:timers/promises';
import type { Rule } from './rules/rule.ts';
import type { Trace } from './trace.ts';
import { inOrder, type TracedCall } from './traced-call.ts';
import { judge, nothingMissing, type Verdict } from './verdict.ts';

/** Limits of the cache: verdicts, and calls of all of them together. The least recently used entries go first. */
interface CacheLimits {
  readonly verdicts: number;
  readonly calls: number;
}
const defaultLimits: CacheLimits = { verdicts: 500, calls: 50_000 };

/** Number of calls that are read before other requests are answered. */
const portion = 5_000;

interface Known {
  /** Oldest first. Null if they were evicted. */
  calls: TracedCall[] | null;
  /** Id of the newest call that was read. */
  readId: number;
  judged: { readonly newestId: number; readonly verdict: Verdict; readonly count: number } | null;
}

/** Caches verdicts, because pages request them often. New calls of a launch renew its verdict, and only these calls are read. */
export class Verdicts {
  #trace: Trace;
  #rules: readonly Rule[];
  #limits: CacheLimits;
  #known = new Map<string, Known>();

  constructor(trace: Trace, rules: readonly Rule[], limits = defaultLimits) {
    this.#trace = trace;
    this.#rules = rules;
    this.#limits = limits;
    trace.beforeForgetting((launchId, lastId) => this.#keepViolations(launchId, lastId));
  }

  /** Keeps the violations of a launch whose calls up to `lastId` are about to be deleted. */
  #keepViolations(launchId: string, lastId: number): void {
    const { gaps, cutCalls } = this.#trace.missing(launchId);
    const verdict = judge(this.#trace.calls(launchId), { ...nothingMissing, gaps, cutCalls }, this.#rules);
    const kept = verdict.rules.flatMap(({ rule, violations }) =>
      violations.filter(({ calls }) => calls.some(({ id }) => id <= lastId)).map((violation) => ({ rule, violation })),
    );
    this.#trace.keep(launchId, kept);
  }

  /** Reads the calls of launches in portions, and lets other requests run between them. `of` then reads only later calls. */
  async read(launchIds: readonly string[]): Promise<void> {
    for (const launchId of launchIds)
      while (this.#isStale(launchId) && this.#readCalls(launchId, portion).added === portion) await tick();
  }

  /** With the number of calls that it is of. */
  of(launchId: string): { readonly verdict: Verdict; readonly count: number } {
    const { newestId, oldestId } = this.#trace.extent(launchId);
    const known = this.#known.get(launchId);
    if (known?.judged?.newestId === newestId) return known.judged;
    const read = this.#readCalls(launchId, null);
    const calls = read.calls.filter(({ id }) => id >= oldestId);
    // A long call may have begun before known calls.
    if (calls.some((call, i) => inOrder(calls[i - 1] ?? call, call) > 0)) calls.sort(inOrder);
    const verdict = judge(calls, this.#trace.missing(launchId), this.#rules);
    const judged = { newestId, verdict, count: calls.length };
    this.#known.set(launchId, { calls, readId: read.readId, judged });
    this.#makeRoom();
    return judged;
  }

  #isStale(launchId: string): boolean {
    return this.#known.get(launchId)?.judged?.newestId !== this.#trace.extent(launchId).newestId;
  }

  /** Reads the next calls, at most `limit`; `added` is their number. Marks the launch as the most recently used. */
  #readCalls(launchId: string, limit: number | null): { calls: TracedCall[]; readId: number; added: number } {
    const known = this.#known.get(launchId);
    const calls = known?.calls ?? [];
    let readId = known?.calls ? known.readId : 0;
    const added = this.#trace.calls(launchId, readId, limit);
    for (const call of added) {
      calls.push(call);
      readId = Math.max(readId, call.id);
    }
    this.#known.delete(launchId);
    this.#known.set(launchId, { calls, readId, judged: known?.judged ?? null });
    return { calls, readId, added: added.length };
  }

  #makeRoom(): void {
    for (const oldest of this.#known.keys()) if (this.#known.size > this.#limits.verdicts) this.#known.delete(oldest);
    let room = this.#limits.calls;
    for (const judged of [...this.#known.values()].reverse()) {
      room -= judged.calls?.length ?? 0;
      if (room < 0) judged.calls = null;
    }
  }
}
