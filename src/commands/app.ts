import { hostname } from 'node:os';
import { pino } from 'pino';
import { readAppConfig } from '../app/config.ts';
import { createApp } from '../app/create-app.ts';
import { confine } from './confine.ts';
import { defineCommand, stopOnSignal } from './command.ts';
import { loadMyApp } from './my-app.ts';
import { logOutput, serve } from '../server/index.ts';
import { scriptCommand } from '../files/index.ts';

/** The app's requests are small: a request that arrives slowly only blocks a connection. */
const requestTimeoutMs = 30_000;

/** Longest time for an output of a job to arrive. */
const jobRequestTimeoutMs = 6 * 3_600_000;

const usage = `usage: ${scriptCommand('app')} [--role all|web|worker]: your app (src/my-app/app.ts, or the module that MY_APP names)

  --role ROLE      web (serves users), worker (processes runs) or all; web and worker need DATABASE_URL (default: all)

PLATFORM_URL       address of the platform; http://127.0.0.1:4010 for a sandbox on this machine
PLATFORM_API_KEY   the key that the platform gave the app, or PLATFORM_API_KEY_FILE
PORT               port to listen on (default 3000)
DATABASE_URL       postgres://...; without it, SQLite below DATA_DIR (default data/app)

All settings: docs/configuration.md`;

/** Umask of the server: its files are for its own user alone. */
const ownUmask = 0o077;

export default defineCommand(import.meta, {
  usage,
  options: { role: { type: 'string' } },
  async run({ values }) {
    process.umask(ownUmask);
    const definition = await loadMyApp();
    const limits = definition.profile?.limits;
    const config = readAppConfig(process.env, (warning) => console.error(`warning: ${warning}`), {
      ...values,
      limits,
    });
    const output = logOutput();
    const instance = `${hostname()}:${process.pid}`;
    const log = pino({ level: config.logLevel, base: { service: 'app', role: config.role, instance } }, output);
    const confinement = await confine(config.confinement, [config.dataDir], [config.inputDir]);
    const app = await createApp({ config, definition, log, confinement, droppedLogLines: () => output.droppedLines });
    const served = await serve(app.handler, {
      host: config.host,
      port: config.port,
      portSetting: 'PORT',
      // Only a process that has runs takes the outputs of jobs. Each arrives in one request.
      requestTimeoutMs: config.stepExecutor === null || config.role === 'web' ? requestTimeoutMs : jobRequestTimeoutMs,
      tls: config.tls,
    }).catch(async (error: unknown) => {
      await app.close();
      throw error;
    });
    stopOnSignal(async () => {
      if (config.drainMs > 0) await app.stopWork();
      await Promise.all([served.close(), app.stopWork()]);
      await app.close();
      await output.flush();
    }, config.drainMs);
    for (const weakness of confinement.weaknesses) log.warn({}, weakness);
    log.info({ confinement: confinement.summary }, 'the app opens foreign files in child processes');
    const unfinished = await app.work().catch(async (error: unknown) => {
      // Without a worker, the server would accept runs that never start.
      await Promise.allSettled([served.close(), app.stopWork()]);
      await app.close();
      throw error;
    });
    if (unfinished > 0) log.info({ runs: unfinished }, 'continuing unfinished runs');
    console.log(`app ready ${served.url}`);
  },
});
