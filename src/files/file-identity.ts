import type { Stats } from 'node:fs';

/** Tells whether a file is still the one that was measured. The kernel sets the time of its last change, and nobody can set it back. */
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
