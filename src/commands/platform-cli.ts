import { platformCommands, usageOf } from './platform-list.ts';
import { runCli } from './run-cli.ts';

/** Commands of the sandbox's own package: `npx marketplace-sandbox --help`. */
await runCli(
  platformCommands,
  `${usageOf('marketplace-sandbox', platformCommands)}

Your app, in any language, calls the address that sandbox or certify prints as it would call the platform's.`,
);
