import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { readAppConfig } from '../../app/config.ts';
import { createApp } from '../../app/create-app.ts';
import type { AppDefinition } from '../../app/definition/app-definition.ts';
import type { RunView } from '../../app/runs/run-view.ts';
import { scratchFolder } from '../../files/index.ts';
import { serve } from '../../server/index.ts';
import { openLaunch } from '../../testing/app-session.ts';
import { confine } from '../confine.ts';
import { trialRun } from '../trial-run.ts';
import type { PlatformPlace } from './platform-place.ts';

const followEveryMs = 500;
const size = 128;

/** Lets the app deliver a file to the platform by the learned profile. Returns the run at its end. */
export async function deliver(place: PlatformPlace, definition: AppDefinition): Promise<RunView> {
  const { profile } = place.learned;
  const scratch = scratchFolder('connect');
  const config = readAppConfig(
    {
      PLATFORM_URL: place.url,
      PLATFORM_API_KEY: place.apiKey,
      APP_SECRET: randomBytes(32).toString('base64url'),
      DATA_DIR: join(scratch.path, 'app'),
      HOST: '127.0.0.1',
      PORT: '0',
      LOG_LEVEL: 'silent',
    },
    () => {},
    { limits: profile.limits },
  );
  const confinement = await confine(config.confinement, [config.dataDir], [config.inputDir]);
  const app = await createApp({
    config,
    definition: { ...definition, profile },
    log: pino({ level: 'silent' }),
    confinement,
  });
  const served = await serve(app.handler, { host: config.host, port: config.port, portSetting: 'PORT' });
  try {
    await app.work();
    const launch = new URL('/launch', served.url);
    launch.searchParams.set(profile.launchTokenField, place.token);
    const session = await openLaunch(launch.href);
    let run = await session.startRun(trialRun(definition, size));
    let shown = '';
    while (!run.isFinal) {
      if (run.state !== shown) place.dialogue.say(sentenceOf(run));
      shown = run.state;
      await sleep(followEveryMs);
      run = await session.run(run.id);
    }
    return run;
  } finally {
    await served.close(0);
    await app.close();
    await scratch.remove();
  }
}

const sentenceOf = ({ state, name }: RunView) =>
  state === 'AWAITING_APPROVAL' ? `  ${state}: approve ${JSON.stringify(name)} in the platform` : `  ${state}`;
