import { didYouMean } from '../contract/did-you-mean.ts';
import { KitError } from '../contract/index.ts';
import { runCommand } from './command.ts';
import type { ListedCommand } from './platform-list.ts';

/** Runs the command that the first argument names. `check` runs before the command is loaded. */
export async function runCli(
  commands: Readonly<Record<string, ListedCommand>>,
  usage: string,
  check: (command: ListedCommand) => void = () => {},
): Promise<void> {
  const [name] = process.argv.splice(2, 1);
  if (name === undefined || name === '--help' || name === 'help') {
    console.log(usage);
    return;
  }
  await runCommand(async () => {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!command)
      throw new KitError(
        'bad_arguments',
        `there is no command ${name}${didYouMean(name, Object.keys(commands))}\n\n${usage}`,
      );
    check(command);
    const { default: loaded } = await command.load();
    return loaded.start();
  });
}
