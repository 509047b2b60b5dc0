import { KitError } from '../contract/kit-error.ts';
import { ChildJobError } from './limits.ts';
import type { FailureKind, FromChild } from './protocol.ts';

/** Codes of the host's own findings about children. A job that reports one of them gets the general code. */
const hostCode = /^(?:job_.+|disk_full|code_unreadable|pool_busy)$/;
const generalCode = 'job_failed';

/**
 * A failure that a job reported of itself. A file may have taken the job's process over and written every word of it, so
 * the words are shown to people as the step's own, and no decision of the host depends on code, kind or message.
 * `ChildJobError` is the host's own finding.
 */
export class ReportedJobError extends KitError {
  /** The kind that the job claims. */
  readonly claimedKind: FailureKind;
  /** Position in the child's code where the error arose, for a log. */
  readonly childStack: string | null;

  constructor({ kind, code, message, stack }: Omit<Extract<FromChild, { type: 'failed' }>, 'type'>) {
    super(hostCode.test(code) ? generalCode : code, message, { status: kind === 'input' ? 422 : 500 });
    this.claimedKind = kind;
    this.childStack = stack;
  }
}

/** True for a failure of a job, whether the job has reported it or the host has found it. */
export const isJobFailure = (error: unknown): error is ReportedJobError | ChildJobError =>
  error instanceof ReportedJobError || error instanceof ChildJobError;
