/** Error with the reason why this machine cannot run the test. */
export class Skipped extends Error {}
/** Returns a root folder below `cache` with Debian, git, certificates, Node, npm and one user. Throws `Skipped`. */
export function bareRoot(cache: string, user: string): string;
/** Returns a root folder below `cache` with Debian alone, without documentation and translations. Throws `Skipped`. */
export function slimRoot(cache: string): string;
/** Runs a program. Throws if it fails. */
export function run(program: string, args: readonly string[]): void;
/** Trimmed standard output of a program. */
export function output(program: string, args: readonly string[]): string;
