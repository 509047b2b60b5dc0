import type { ChildPlace } from './bubblewrap.ts';
import type { ChildUser } from './child-user.ts';
import type { ChildGroup, GroupLimits } from './cgroup.ts';

/** Hard limits that the system holds one process to, and what it inherits to others. */
export interface ProcessLimits {
  readonly memoryBytes: number;
  /** Maximum size of one file. */
  readonly fileBytes: number;
}

/** Keeps child processes from everything that is not theirs. A confinement starts every child. */
export interface Confinement {
  /** `absent`: no child process starts here (`noChildren`). */
  readonly kind: 'bubblewrap' | 'none' | 'absent';
  /** For the log and for `/ready`. Says also whether the kernel bounds the memory of children, or the server only watches it. */
  readonly summary: string;
  /** Reason to warn an operator at the start, in sentences. Empty if children are confined as well as they can be. */
  readonly weaknesses: readonly string[];
  /** Version of GDAL that children load. */
  readonly gdalVersion: string;
  /** The program and its arguments, Node and its options last: the script follows. */
  command(place: ChildPlace, limits: ProcessLimits): readonly string[];
  /** The user of a new child. Null if children keep the server's own. */
  newUser(): ChildUser | null;
  /** Folders of the server's data, whose files may be given to the group of children. */
  readonly ownFolders: readonly string[];
  /** A control group for a child; null where none is delegated. */
  group(limits: GroupLimits): ChildGroup | null;
  /** Called with the modules that a child is about to import. */
  warmUp(modules: readonly URL[]): void;
  /** The filter of system calls, which the program reads on descriptor 4. Null if there is none. */
  readonly filter: Buffer | null;
  /** All of a child's environment. */
  environment(workFolder: string): Readonly<Record<string, string>>;
}
