import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { KitError } from '../contract/index.ts';
import { readSandboxConfig } from '../sandbox/config.ts';
import { createSandbox } from '../sandbox/create-sandbox.ts';
import { confine } from './confine.ts';
import { importWithProgress } from './sandbox/import.ts';
import { runCommand, stopOnSignal } from './command.ts';
import { serve } from './serve.ts';

const usage = 'npm run sandbox -- [--port N] [--data DIR] [--seed demo|none] [--import PATH]...';

await runCommand(async () => {
  const options = readOptions();
  const config = readSandboxConfig(process.env, options);
  const log = pino({ level: config.logLevel, base: { service: 'sandbox' } }, pino.destination({ dest: 2, sync: true }));
  const confinement = await confine(config.confinement, [config.dataDir]);
  const sandbox = await createSandbox({ config, log, confinement });
  for (const path of options.import ?? []) await importWithProgress(sandbox, path);
  const served = await serve(sandbox.handler, { host: config.host, port: config.port, portSetting: '--port' }).catch(
    async (error: unknown) => {
      await sandbox.close();
      throw error;
    },
  );
  sandbox.listensAt(served.url);
  log.info({ confinement: confinement.summary }, 'foreign files are opened in child processes');
  stopOnSignal(async () => {
    await served.close();
    await sandbox.close();
  });
  if (sandbox.madeApiKey !== null) {
    console.log(`api key ${sandbox.madeApiKey}`);
    console.log('  made because SANDBOX_API_KEY is not set; it is shown this once, and good for this data folder');
  }
  console.log(`sandbox ready ${served.url}`);
});

function readOptions(): { port?: string; data?: string; seed?: string; import?: string[] } {
  try {
    return parseArgs({
      options: {
        port: { type: 'string' },
        data: { type: 'string' },
        seed: { type: 'string' },
        import: { type: 'string', multiple: true },
      },
    }).values;
  } catch (error) {
    throw new KitError('bad_arguments', `${(error as Error).message}\nusage: ${usage}`);
  }
}
