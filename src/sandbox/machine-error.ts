import { ChildJobError } from '../child/index.ts';
import { codeOf, isTransient } from '../files/index.ts';

/** Codes of a full disk from the system, the database and the watch over child processes. */
const ofFullDisk: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'SQLITE_FULL', 'disk_full'];

export function isDiskFullError(error: unknown): boolean {
  return ofFullDisk.includes(codeOf(error));
}

/** Says nothing of what was asked, only of the machine: the same may be well when it is asked again. */
export function isOfTheMachine(error: unknown): boolean {
  return (error instanceof ChildJobError && error.kind === 'transient') || isTransient(error);
}
