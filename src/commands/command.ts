import { fileURLToPath } from 'node:url';
import { KitError } from '../contract/kit-error.ts';
import { readArguments, type Given, type Options } from './arguments.ts';

/** Ctrl-C, what asks a process to end, and the end of its terminal. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A command of the kit, as `marketplace-app-kit NAME` runs it. */
export interface Command<Taken extends Options, Positionals extends boolean> {
  /** The text of `--help`. */
  readonly usage: string;
  /** Options, as Node's `parseArgs` takes them. */
  readonly options: Taken;
  /** True if it takes arguments in addition to its options. Default false. */
  readonly allowPositionals?: Positionals;
  /** Runs the command. Returns its exit status, by default 0. Throws `KitError`. */
  readonly run: (given: Given<{ options: Taken; allowPositionals: Positionals }>) => Promise<number | void>;
}

/** A command that reads its own line. */
export interface DefinedCommand {
  readonly usage: string;
  /** Reads the arguments of this process, and runs the command. */
  readonly start: () => Promise<number | void>;
}

/** Defines the command of a module. To import the module does nothing; Node runs the command if the module is its entry. */
export function defineCommand<Taken extends Options, const Positionals extends boolean = false>(
  meta: ImportMeta,
  { usage, options, allowPositionals, run }: Command<Taken, Positionals>,
): DefinedCommand {
  // The type parameter, too, is false unless it is given.
  const config = { options, allowPositionals: (allowPositionals ?? false) as Positionals };
  const start = async () => run(readArguments(usage, config));
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- Node before 24.2 does not have `main`
  if (meta.main ?? process.argv[1] === fileURLToPath(meta.url)) void runCommand(start);
  return { usage, start };
}

/** Runs a command: a `KitError` ends it with its message and status 1, anything else is a defect and shows its stack. */
export async function runCommand(main: () => number | void | Promise<number | void>): Promise<void> {
  // A reader such as `head` may close the output early. Exit handlers clean up.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(0);
  });
  // Without its own signal handler, a command exits on a signal. The exit handlers then remove folders and stop services.
  for (const signal of endingSignals)
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(130);
    });
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (error instanceof KitError) console.error(error.message);
    else console.error(error);
    process.exitCode = 1;
  }
}

/** Calls `onFirst` on the first signal that asks the process to end; a second one ends it at once, and what it started with it. */
export function onInterrupt(onFirst: () => void): void {
  let isAsked = false;
  for (const signal of endingSignals) {
    process.on(signal, () => {
      if (isAsked) process.exit(130);
      isAsked = true;
      onFirst();
    });
  }
}

/** Orchestrators kill a process ten seconds after they asked it to end. A database that does not answer must not hold a process that long; others find what the process left. */
const stopWithinMs = 9_000;

/** Calls `stop` once if a signal asks the process to end, or if the process that started it as a service has gone. Then ends the process, at the latest nine seconds after `drainMs`. A second signal ends the process at once. */
export function stopOnSignal(stop: () => Promise<void>, drainMs = 0): void {
  const end = () => {
    setTimeout(() => process.exit(0), drainMs + stopWithinMs).unref();
    void stop().finally(() => process.exit(0));
  };
  onInterrupt(end);
  process.once('disconnect', end);
  // It may be gone already.
  if (process.send !== undefined && !process.connected) end();
}
