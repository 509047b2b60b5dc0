import type { Stats } from 'node:fs';

/** Identity of a file at the time of its measurement. The kernel sets `changedAtMs`, and no program can set it back. */
export interface FileIdentity {
  readonly inode: number;
  readonly sizeBytes: number;
  readonly changedAtMs: number;
}

export const identityOf = ({ ino, size, ctimeMs }: Pick<Stats, 'ino' | 'size' | 'ctimeMs'>): FileIdentity => ({
  inode: ino,
  sizeBytes: size,
  changedAtMs: ctimeMs,
});

export const isSameFile = (a: FileIdentity, b: FileIdentity): boolean =>
  a.inode === b.inode && a.sizeBytes === b.sizeBytes && a.changedAtMs === b.changedAtMs;
