import { KitError } from '../../contract/index.ts';
import { PlatformError } from '../../platform-client/index.ts';
import { ChildJobError, ReportedJobError, type FailureKind } from '../../child/index.ts';
import { isTransient } from '../../files/index.ts';
import { adviceOf, reportedCode } from '../app-errors.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import { NoFittingWorkerError } from './placement.ts';
import type { RunFailure } from './run.ts';

/**
 * Classifies the failure that ended a stage. `input`: the platform refused for good, or the user's input is at fault.
 * `transient`: a platform, a database or a disk is away, and the app waits for it. `bug`: any other error, which is a mistake in the code.
 */
export function failureKindOf(error: unknown): FailureKind {
  if (error instanceof ChildJobError) return error.kind;
  // A step's claim that the machine is at fault leads to no repeat.
  if (error instanceof ReportedJobError) return error.claimedKind === 'bug' ? 'bug' : 'input';
  if (error instanceof PlatformError) return error.isTransient ? 'transient' : 'input';
  if (error instanceof NoFittingWorkerError) return 'input';
  if (error instanceof DatabaseUnavailableError || isTransient(error)) return 'transient';
  return error instanceof KitError && error.status < 500 ? 'input' : 'bug';
}

/** Describes a run's failure for its user. For a defect it says only that: the error's text stays in the log, unless `withStack`. */
export function describeFailure(error: unknown, { withStack = false } = {}): RunFailure {
  const described = describe(error);
  if (!withStack || failureKindOf(error) !== 'bug') return described;
  const stack =
    error instanceof ReportedJobError
      ? (error.childStack ?? error.message)
      : error instanceof Error
        ? error.stack
        : null;
  return stack ? { ...described, stack } : described;
}

function describe(error: unknown): RunFailure {
  const failure = (
    code: string,
    message: string,
    fallback: Parameters<typeof adviceOf>[1],
    requestId: string | null = null,
  ): RunFailure => ({ code, message, advice: adviceOf(code, fallback), requestId });
  if (error instanceof ReportedJobError) return { ...describeReport(error, failure), reportedBy: 'step' };
  if (error instanceof PlatformError)
    return failure(error.code, error.message, error.isTransient ? 'platform' : 'operator', error.requestId);
  if (error instanceof KitError) return failure(error.code, error.message, error.status < 500 ? 'input' : 'operator');
  if (failureKindOf(error) === 'transient')
    return failure(
      'world_away',
      'the disk or another resource of the app’s server was unavailable for too long',
      'platform',
    );
  const advice = adviceOf('step_defect', 'operator');
  return { code: 'internal_error', message: 'the app has a bug: it failed unexpectedly', advice, requestId: null };
}

/** The text of a defect is for its author; the log has it. */
function describeReport(
  error: ReportedJobError,
  failure: (code: string, message: string, fallback: 'input' | 'operator') => RunFailure,
): RunFailure {
  const code = reportedCode(error.code);
  if (code === 'job_failed' && error.claimedKind === 'bug')
    return failure(
      'step_defect',
      'the app has a bug: its processing step failed in an unexpected way, and your input is not at fault',
      'operator',
    );
  if (error.claimedKind === 'transient')
    return { ...failure(code, error.message, 'operator'), advice: adviceOf('world_away', 'operator') };
  return failure(code, error.message, error.claimedKind === 'input' ? 'input' : 'operator');
}

/** The platform itself has ended the session for good: nothing can be done with its token any more. */
export function isSessionOver(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  const { code } = error;
  return code === 'token_revoked' || code === 'token_expired' || code === 'token_not_found';
}
