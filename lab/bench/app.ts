/** The app with the bench's own step; otherwise as `npm run app` starts it. */
import { pino } from 'pino';
import { readAppConfig } from '../../src/app/config.ts';
import { createApp } from '../../src/app/create-app.ts';
import { confine } from '../../src/commands/confine.ts';
import { stopOnSignal } from '../../src/commands/command.ts';
import { serve } from '../../src/server/index.ts';
import definition from './upload-step/app.ts';

const config = readAppConfig(process.env, () => {});
const app = await createApp({
  config,
  log: pino({ level: config.logLevel }),
  confinement: await confine(config.confinement, [config.dataDir]),
  definition,
});
const served = await serve(app.handler, { host: config.host, port: config.port, portSetting: 'PORT' });
stopOnSignal(async () => {
  await served.close();
  await app.close();
});
await app.work();
console.log(`app ready ${served.url}`);
