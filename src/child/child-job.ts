import type { LentFile } from './lend-file.ts';
import type { ChildUsage } from './limits.ts';

/** A job for a child process, as its host gives it. */
export interface ChildJob {
  /** Module whose default export is the `Job`. */
  readonly module: URL;
  /** Further modules that the job imports by their address, with what lies beside them. Default: none. */
  readonly imports?: readonly URL[];
  /** Plain data. */
  readonly input: unknown;
  /** Foreign files: the job finds them in `context.files`, read-only. Default: none. */
  readonly files?: readonly LentFile[];
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (fraction: number, note: string | null) => void;
  /** Answers what the job asks, one question at a time; a rejection ends the job, which rejects with it. The question may be anything. Default: a question ends the job. */
  readonly onAsk?: ((question: unknown, signal: AbortSignal) => Promise<unknown>) | undefined;
  /** Use of the child and of all that it has started, as sampled. A kept child counts its earlier jobs too. */
  readonly onUsage?: ((usage: ChildUsage) => void) | undefined;
}
