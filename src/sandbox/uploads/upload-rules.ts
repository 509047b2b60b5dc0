import { isDiskFullError } from '../machine-error.ts';
import { SandboxError } from '../web/sandbox-error.ts';

/** Differences between the two groups of upload calls (contract, "File endpoints"). */
export interface UploadRules {
  /** Parts may come before their turn. */
  readonly anyOrder: boolean;
  readonly tooLargeStatus: 400 | 413;
  readonly noRoomStatus: 500 | 507;
}

/** Spec 4.8 */
export const externalAppRules: UploadRules = { anyOrder: false, tooLargeStatus: 400, noRoomStatus: 500 };
/** Spec 4.4 */
export const fileRules: UploadRules = { anyOrder: true, tooLargeStatus: 413, noRoomStatus: 507 };

export function chunkTooLarge(rules: UploadRules, chunkBytes: number): SandboxError {
  return new SandboxError('chunk_too_large', {
    status: rules.tooLargeStatus,
    message: `Chunk is larger than ${chunkBytes} bytes`,
  });
}

export function noRoom(rules: UploadRules, cause?: unknown): SandboxError {
  return new SandboxError('insufficient_storage', { status: rules.noRoomStatus, cause });
}

/** A full disk, as system and database call it, is `noRoom`; any other error stays what it is. */
export function asStorageError(error: unknown, rules: UploadRules): unknown {
  return isDiskFullError(error) ? noRoom(rules, error) : error;
}
