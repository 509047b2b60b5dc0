import type { Git } from './git.ts';

/** A fork in the middle of an upgrade: its working tree holds the later kit and the fork's own changes, merged. */
export interface Fork {
  readonly git: Git;
  readonly folder: string;
  /** The fork's commit before the upgrade. */
  readonly before: string;
  /** The kit's commit that the fork stood on. */
  readonly base: string;
  /** The kit's commit that it is upgraded to. */
  readonly kit: string;
}

/** What an upgrade could not do by itself: `npm test` fails until it is done. */
export interface Todo {
  /** The migration that found it. */
  readonly name: string;
  /** File, and line where it is known. */
  readonly place: string;
  readonly what: string;
}

/** One change of the kit that a fork must follow, carried out for it. */
export interface Migration {
  readonly name: string;
  /** What in the fork it concerns, by path; empty where there is nothing to do, and after `apply`. */
  detect(fork: Fork): Promise<readonly string[]>;
  /** Paths that `apply` makes: an upgrade that is given up removes them. */
  writes(found: readonly string[]): readonly string[];
  /** Does it, as far as that can be done by itself; once more changes nothing. */
  apply(fork: Fork, found: readonly string[]): Promise<readonly Todo[]>;
}

/** Where the fork's own things are: an upgrade leaves them as the fork has them. */
export const room = ['src/my-app', 'templates/my-app', 'test/my-app'] as const;

/** Paths that the fork has changed, added or removed since it left the kit. */
export async function changedByFork({ git, base, before }: Fork, ...paths: readonly string[]): Promise<string[]> {
  return git.lines('diff', '--name-only', '--no-renames', base, before, '--', ...paths);
}
