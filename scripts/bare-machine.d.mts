/** This machine cannot do it, for the reason in the message. */
export class Skipped extends Error {}
/** A root folder below `cache` with Debian, git, certificates, Node, npm and one user, made once. Throws `Skipped`. */
export function bareRoot(cache: string, user: string): string;
/** Runs a program. Throws if it fails. */
export function run(program: string, args: readonly string[]): void;
/** Standard output of a program, without space around it. */
export function output(program: string, args: readonly string[]): string;
