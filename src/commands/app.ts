import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { readAppConfig } from '../app/config.ts';
import { createApp } from '../app/create-app.ts';
import { KitError } from '../contract/index.ts';
import { confine } from './confine.ts';
import { runCommand, stopOnSignal } from './command.ts';
import { serve } from './serve.ts';

/** The app's requests are small: one that dribbles in keeps a connection for no good. */
const requestTimeoutMs = 30_000;

await runCommand(async () => {
  const config = readAppConfig(process.env, (warning) => console.error(`warning: ${warning}`), readOptions());
  const log = pino(
    { level: config.logLevel, base: { service: 'app', role: config.role } },
    pino.destination({ dest: 2, sync: true }),
  );
  const confinement = await confine(config.confinement, [config.dataDir, config.inputDir]);
  const app = await createApp({ config, log, confinement });
  const served = await serve(app.handler, {
    host: config.host,
    port: config.port,
    portSetting: 'PORT',
    requestTimeoutMs,
  }).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  stopOnSignal(async () => {
    await Promise.all([served.close(), app.stopWork()]);
    await app.close();
  });
  log.info({ confinement: confinement.summary }, 'foreign files are opened in child processes');
  const unfinished = await app.work();
  if (unfinished > 0) log.info({ runs: unfinished }, 'going on with unfinished runs');
  console.log(`app ready ${served.url}`);
});

function readOptions(): { role?: string } {
  try {
    return parseArgs({ options: { role: { type: 'string' } } }).values;
  } catch (error) {
    throw new KitError('bad_arguments', `${(error as Error).message}\nusage: npm run app -- [--role all|web|worker]`);
  }
}
