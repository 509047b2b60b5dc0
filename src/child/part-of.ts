import type { JobContext } from './protocol.ts';

/** Context of a part of a job, whose progress runs from `from` to `to` of the whole. Both are from 0 to 1. */
export function partOf(context: JobContext, from: number, to: number): JobContext {
  return {
    signal: context.signal,
    progress: (fraction, note) => context.progress(from + fraction * (to - from), note),
  };
}
