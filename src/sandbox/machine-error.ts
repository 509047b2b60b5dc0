import { ChildJobError, isOfTheWorld } from '../raster/index.ts';

const sqliteTroubled = /^SQLITE_(FULL|IOERR|BUSY|READONLY|CANTOPEN)/;

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** A full disk, as the system and the database call it. */
export function isDiskFullError(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].includes(codeOf(error)) || (error instanceof ChildJobError && error.code === 'disk_full');
}

/** Says nothing of what was asked, only of the machine: the same may be well when it is asked again. */
export function isOfTheMachine(error: unknown): boolean {
  return (error instanceof ChildJobError && error.kind === 'world') || isOfTheWorld(error) || sqliteTroubled.test(codeOf(error));
}
