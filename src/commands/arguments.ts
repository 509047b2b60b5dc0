import { didYouMean } from '../contract/did-you-mean.ts';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { KitError } from '../contract/kit-error.ts';
import { messageOf } from '../files/index.ts';

/** The folder that a command was called in. npm runs scripts in the folder of the package. */
export const callerFolder = (): string => process.env['INIT_CWD'] ?? process.cwd();

/** An argument that a command does not take: says what was wrong, and how it is used. */
export function wrongArguments(message: string, usage: string): KitError {
  return new KitError('bad_arguments', `${message}\n\n${usage}`);
}

export type Options = NonNullable<ParseArgsConfig['options']>;

/** Options and arguments that a command takes, as `parseArgs` of Node takes them. */
export type ArgumentsConfig = {
  readonly options: Options;
  readonly allowPositionals?: boolean;
};

/** Values and arguments of a command line. */
export type Given<Config extends ArgumentsConfig> = ReturnType<typeof parseArgs<Config>>;

/** Reads a command line. `--help` prints the usage and ends the process. Throws `KitError`, with the usage, for an unknown argument. */
export function readArguments<const Config extends ArgumentsConfig>(
  usage: string,
  config: Config,
  args: readonly string[] = process.argv.slice(2),
): Given<Config> {
  if (args.some((arg, i) => arg === '--help' && !args.slice(0, i).includes('--'))) {
    console.log(usage);
    process.exit(0);
  }
  try {
    // `args` changes nothing of what they are parsed into.
    return parseArgs({ ...config, args: unambiguous(args, config) }) as Given<Config>;
  } catch (error) {
    const [, unknown] = /^Unknown option '--([a-z-]+)'/.exec(messageOf(error)) ?? [];
    const options = Object.keys(config.options).map((name) => `--${name}`);
    throw wrongArguments(
      unknown === undefined
        ? messageOf(error)
        : `there is no option --${unknown}${didYouMean(`--${unknown}`, options)}`,
      usage,
    );
  }
}

/** An id that begins with a hyphen. Ids have more characters than this, and options no capitals, digits or underscores. */
const isId = (arg: string) => /^-[\w-]{7,}$/.test(arg) && !/^--[a-z-]+$/.test(arg);

/** Marks ids that begin with a hyphen, which `parseArgs` would take for options. */
function unambiguous(args: readonly string[], { options }: ArgumentsConfig): string[] {
  const line: string[] = [];
  const alone: string[] = [];
  for (const [i, arg] of args.entries()) {
    if (arg === '--') return [...line, '--', ...alone, ...args.slice(i + 1)];
    const [, option = ''] = /^--([a-z-]+)$/.exec(args[i - 1] ?? '') ?? [];
    if (!isId(arg)) line.push(arg);
    else if (options[option]?.type === 'string') line.push(`${line.pop()}=${arg}`);
    else alone.push(arg);
  }
  return alone.length === 0 ? line : [...line, '--', ...alone];
}
