import { pino } from 'pino';
import { readAppConfig } from '../app/config.ts';
import { createApp } from '../app/create-app.ts';
import { runCommand, stopOnSignal } from './command.ts';
import { serve } from './serve.ts';

await runCommand(async () => {
  const config = readAppConfig(process.env, (warning) => console.error(`warning: ${warning}`));
  const log = pino({ level: config.logLevel, base: { service: 'app' } }, pino.destination({ dest: 2, sync: true }));
  const app = await createApp({ config, log });
  const served = await serve(app.handler, { host: config.host, port: config.port, portSetting: 'PORT' });
  stopOnSignal(async () => {
    await served.close();
    await app.close();
  });
  const resumed = await app.resume();
  if (resumed > 0) log.info({ runs: resumed }, 'going on with unfinished runs');
  console.log(`app ready ${served.url}`);
});
