import { KitError } from '../../contract/index.ts';
import { PlatformError } from '../../platform-client/index.ts';
import { ChildJobError, type FailureKind } from '../../child/index.ts';
import { isTransient } from '../../files/index.ts';
import { adviceOf } from '../app-errors.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import type { RunFailure } from './run.ts';

/**
 * Classifies the failure that ended a stage. `input`: the platform refused for good, or the user's input is at fault.
 * `transient`: a platform, a database or a disk is away, and the app waits for it. `bug`: any other error, which is a mistake in the code.
 */
export function failureKindOf(error: unknown): FailureKind {
  if (error instanceof ChildJobError) return error.kind;
  if (error instanceof PlatformError) return error.isTransient ? 'transient' : 'input';
  if (error instanceof DatabaseUnavailableError || isTransient(error)) return 'transient';
  return error instanceof KitError && error.status < 500 ? 'input' : 'bug';
}

/** Describes a run's failure for its user. For a defect it says only that: the error's text stays in the log, unless `withStack`. */
export function describeFailure(error: unknown, { withStack = false } = {}): RunFailure {
  const described = describe(error);
  if (!withStack || failureKindOf(error) !== 'bug') return described;
  const stack =
    error instanceof ChildJobError ? (error.childStack ?? error.message) : error instanceof Error ? error.stack : null;
  return stack ? { ...described, stack } : described;
}

function describe(error: unknown): RunFailure {
  const failure = (
    code: string,
    message: string,
    fallback: Parameters<typeof adviceOf>[1],
    requestId: string | null = null,
  ): RunFailure => ({ code, message, advice: adviceOf(code, fallback), requestId });
  if (error instanceof ChildJobError && error.code === 'job_failed' && error.kind === 'bug')
    return failure(
      'step_defect',
      'the app has a bug: its processing step failed in an unexpected way, and your input is not at fault',
      'operator',
    );
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

/** The platform itself has ended the session for good: nothing can be done with its token any more. */
export function isSessionOver(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  const { code } = error;
  return code === 'token_revoked' || code === 'token_expired' || code === 'token_not_found';
}
