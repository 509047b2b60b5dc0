import type { Rule } from './rules/rule.ts';
import type { Trace } from './trace.ts';
import { judge, type Verdict } from './verdict.ts';

/** Launches whose verdicts are kept; the one that was judged least lately makes room. */
const mostKept = 500;

/** Verdicts as pages ask for them again and again: judged anew only where a launch has called since. */
export class Verdicts {
  #trace: Trace;
  #rules: readonly Rule[];
  #known = new Map<string, { newestId: number; verdict: Verdict }>();

  constructor(trace: Trace, rules: readonly Rule[]) {
    this.#trace = trace;
    this.#rules = rules;
  }

  /** With the number of calls that it is of. */
  of(launchId: string): { verdict: Verdict; count: number } {
    const { count, newestId } = this.#trace.extent(launchId);
    const known = this.#known.get(launchId);
    if (known?.newestId === newestId) return { verdict: known.verdict, count };
    const verdict = judge(this.#trace.calls(launchId), this.#trace.gaps(), this.#rules);
    this.#known.delete(launchId);
    this.#known.set(launchId, { newestId, verdict });
    for (const oldest of this.#known.keys()) if (this.#known.size > mostKept) this.#known.delete(oldest);
    return { verdict, count };
  }
}
