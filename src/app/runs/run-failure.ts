import { KitError } from '../../contract/index.ts';
import { PlatformError } from '../../platform-client/index.ts';
import { ChildJobError, type FailureKind } from '../../child/index.ts';
import { isOfTheWorld } from '../../files/index.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import type { RunFailure } from './run.ts';

const launchAgain = 'Launch the app again from the marketplace and start a new run.';
const tryLater = 'Start the run again in a while. If it happens again, tell the platform the request id.';
const changeInput = 'Correct the input or the parameters and start a new run.';
const askOperator = 'Tell whoever runs this app: its configuration is wrong, or it has a bug.';

/** Advice for the user, by error code. docs/troubleshooting.md lists every code. */
export const advice: Readonly<Record<string, string>> = {
  token_revoked: `The platform has ended this session. ${launchAgain}`,
  token_expired: `The session ended before the app could renew it. ${launchAgain}`,
  token_erased: `This session has ended. ${launchAgain}`,
  token_unreadable: launchAgain,
  job_processes_exceeded: 'Take another input, or report this one to whoever runs this app.',
  job_output_unsafe: askOperator,
  step_version_gone: 'Start a new run: it asks you to approve the version that the app has now.',
  raster_names_files: 'Write the file again without its metadata, and start a new run with that.',
  raster_needs_confinement: 'Take a file of another format, or ask whoever runs this app to install bubblewrap.',
  token_not_found: `The platform does not know this session. ${launchAgain}`,
  authentication_failed: askOperator,
  unauthorized: askOperator,
  permission_denied: askOperator,
  redirect_refused: askOperator,
  step_broke_its_declaration: askOperator,
  unexpected_answer: askOperator,
  connection_failed: tryLater,
  broken_answer: tryLater,
  timeout: tryLater,
  internal_error: tryLater,
  injected_fault: tryLater,
  insufficient_storage: 'The platform has no room for the output. Start the run again once it has room.',
  asset_origin_refused: askOperator,
  asset_too_large: 'Take a smaller item, or ask whoever runs this app for a larger limit (INPUT_MAX_BYTES).',
  archive_too_large: 'Take a smaller item, or ask whoever runs this app for a larger limit (INPUT_MAX_BYTES).',
  archive_broken: "The item's data is damaged: take another one, and tell the platform.",
  job_timeout: 'Take a smaller input, or ask whoever runs this app for a longer limit (STEP_TIMEOUT_MS).',
  job_memory_exceeded: 'Take a smaller input, or ask whoever runs this app for more memory (STEP_MEMORY_BYTES).',
  job_disk_exceeded: 'Take a smaller input, or ask whoever runs this app for more disk (STEP_DISK_BYTES).',
  work_disk_full:
    'Start the run again later. If it fails again, ask the operator of this app for more disk space (WORK_DISK_BYTES).',
  job_crashed: 'The processing crashed on this input. Try another one, and report it to whoever runs this app.',
};

/**
 * Says whose failure ended a stage. The user learns what the platform refuses for good. A platform, a
 * database or a disk that is away belongs to the world, and the app waits for it. Whatever nobody meant is a defect.
 */
export function failureKindOf(error: unknown): FailureKind {
  if (error instanceof ChildJobError) return error.kind;
  if (error instanceof PlatformError) return error.isTransient ? 'world' : 'user';
  if (error instanceof DatabaseUnavailableError || isOfTheWorld(error)) return 'world';
  return error instanceof KitError && error.status < 500 ? 'user' : 'defect';
}

/** Describes a run's failure for its user. For a defect it says only that: the error's text stays in the log, unless `withStack`. */
export function describeFailure(error: unknown, { withStack = false } = {}): RunFailure {
  const described = describe(error);
  if (!withStack || failureKindOf(error) !== 'defect') return described;
  const stack =
    error instanceof ChildJobError ? (error.childStack ?? error.message) : error instanceof Error ? error.stack : null;
  return stack ? { ...described, stack } : described;
}

function describe(error: unknown): RunFailure {
  if (error instanceof ChildJobError && error.code === 'job_failed' && error.kind === 'defect') {
    return {
      code: 'step_defect',
      message: 'the app has a bug: its processing step failed in an unexpected way, and your input is not at fault',
      advice: askOperator,
      requestId: null,
    };
  }
  if (error instanceof PlatformError) {
    const fallback = error.isTransient ? tryLater : askOperator;
    return {
      code: error.code,
      message: error.message,
      advice: advice[error.code] ?? fallback,
      requestId: error.requestId,
    };
  }
  if (error instanceof KitError) {
    const fallback = error.status < 500 ? changeInput : askOperator;
    return { code: error.code, message: error.message, advice: advice[error.code] ?? fallback, requestId: null };
  }
  if (failureKindOf(error) === 'world')
    return {
      code: 'world_away',
      message: 'the disk or another part of the machine that the app runs on was out of order for too long',
      advice: tryLater,
      requestId: null,
    };
  return {
    code: 'internal_error',
    message: 'the app has a bug: it failed unexpectedly',
    advice: askOperator,
    requestId: null,
  };
}

/** The platform itself has ended the session for good: nothing can be done with its token any more. */
export function isSessionOver(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  const { code } = error;
  return code === 'token_revoked' || code === 'token_expired' || code === 'token_not_found';
}
