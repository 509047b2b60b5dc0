import { requireSandboxPackages } from '../sandbox/packages.ts';
import { commands, usage } from './list.ts';
import { runCli } from './run-cli.ts';

await runCli(commands, usage, ({ startsSandbox }) => {
  if (startsSandbox) requireSandboxPackages();
});
