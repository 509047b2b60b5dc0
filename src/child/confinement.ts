import type { ChildPlace } from './bubblewrap.ts';
import type { ChildGroup, GroupLimits } from './cgroup.ts';

/** Hard limits that the system holds one process to, and what it inherits to others. */
export interface ProcessLimits {
  readonly memoryBytes: number;
  /** Maximum size of one file. */
  readonly fileBytes: number;
}

/** Keeps child processes from everything that is not theirs. A confinement starts every child. */
export interface Confinement {
  readonly kind: 'bubblewrap' | 'none';
  /** For the log and for `/ready`. */
  readonly summary: string;
  /** The program and its arguments, Node and its options last: the script follows. */
  command(place: ChildPlace, limits: ProcessLimits): readonly string[];
  /** A control group for a child; null where none is delegated. */
  group(limits: GroupLimits): ChildGroup | null;
  /** Called with the modules that a child is about to import. */
  warmUp(modules: readonly URL[]): void;
  /** The filter of system calls, which the program reads on descriptor 4. Null if there is none. */
  readonly filter: Buffer | null;
  /** All of a child's environment. */
  environment(workFolder: string): Readonly<Record<string, string>>;
}
