import { didYouMean } from '../contract/did-you-mean.ts';
import { KitError } from '../contract/index.ts';
import { requireSandboxPackages } from '../sandbox/packages.ts';
import { runCommand } from './command.ts';
import { commands, usage } from './list.ts';

const [name] = process.argv.splice(2, 1);
if (name === undefined || name === '--help' || name === 'help') console.log(usage);
else
  await runCommand(async () => {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!command)
      throw new KitError(
        'bad_arguments',
        `there is no command ${name}${didYouMean(name, Object.keys(commands))}\n\n${usage}`,
      );
    if (command.startsSandbox) requireSandboxPackages();
    const { default: loaded } = await command.load();
    return loaded.start();
  });
