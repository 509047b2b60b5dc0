import { parseArgs, type ParseArgsConfig } from 'node:util';
import { KitError } from '../contract/kit-error.ts';

/** The folder that a command was called in. npm runs scripts in the folder of the package. */
export const callerFolder = (): string => process.env['INIT_CWD'] ?? process.cwd();

/** An argument that a command does not take: says what was wrong, and how it is used. */
export function wrongArguments(message: string, usage: string): KitError {
  return new KitError('bad_arguments', `${message}\n\n${usage}`);
}

/**
 * Reads a command line. `--help` prints the usage and ends the process; an argument that is not in `options` is an error with
 * the usage below it. Throws `KitError`.
 */
export function readArguments<Config extends Omit<ParseArgsConfig, 'args'>>(
  usage: string,
  config: Config,
  args: readonly string[] = process.argv.slice(2),
): ReturnType<typeof parseArgs<Config>> {
  if (args.some((arg, i) => arg === '--help' && !args.slice(0, i).includes('--'))) {
    console.log(usage);
    process.exit(0);
  }
  try {
    // `args` changes nothing of what they are parsed into.
    return parseArgs({ ...config, args: [...args] }) as ReturnType<typeof parseArgs<Config>>;
  } catch (error) {
    throw wrongArguments((error as Error).message, usage);
  }
}
