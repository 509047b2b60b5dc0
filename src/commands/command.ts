import { KitError } from '../contract/index.ts';

/** Runs a command: a `KitError` ends it with its message and status 1, anything else is a defect and shows its stack. */
export async function runCommand(main: () => Promise<number | void>): Promise<void> {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (error instanceof KitError) console.error(error.message);
    else console.error(error);
    process.exitCode = 1;
  }
}

/** Calls `stop` once on Ctrl-C or SIGTERM, and ends the process when it is done; a second signal ends it at once. */
export function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  const onSignal = () => {
    if (stopping) process.exit(130);
    stopping = true;
    void stop().finally(() => process.exit(0));
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
}
