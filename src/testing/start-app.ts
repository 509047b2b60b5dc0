import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { readAppConfig } from '../app/config.ts';
import { createApp, type AppOptions } from '../app/create-app.ts';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { scratchFolder } from '../files/index.ts';
import { serve } from '../server/index.ts';
import { confinementOfTests } from './start-sandbox.ts';

/** Options of `startApp`. */
export interface StartAppOptions extends Partial<Pick<AppOptions, 'stores' | 'clock' | 'http'>> {
  /** The platform: its address, and the key that the app calls it with. */
  readonly platform: { readonly url: string; readonly apiKey: string };
  /** Further settings, by their names in docs/configuration.md. */
  readonly env?: Readonly<Record<string, string>>;
}

/** An app in this process. It ends with the process, or by `close`; nothing of it stays. */
export interface RunningApp extends AsyncDisposable {
  readonly url: string;
  /** Address that a marketplace launches. */
  readonly launchUrl: string;
  close(): Promise<void>;
}

/** Starts an app for a test, polling as fast as the platform allows. */
export async function startApp(definition: AppDefinition, options: StartAppOptions): Promise<RunningApp> {
  const { platform, env = {}, ...ports } = options;
  const folder = scratchFolder('test');
  const limits = definition.profile?.limits;
  const config = readAppConfig(
    {
      PLATFORM_URL: platform.url,
      PLATFORM_API_KEY: platform.apiKey,
      APP_SECRET: randomBytes(32).toString('base64url'),
      DATA_DIR: folder.path,
      PORT: '0',
      POLL_INTERVAL_MS: String(limits?.pollIntervalMs.min ?? 2_000),
      LOG_LEVEL: 'silent',
      ...env,
    },
    () => {},
    { limits },
  );
  const app = await createApp({
    ...ports,
    config,
    definition,
    log: pino({ level: config.logLevel }),
    confinement: await confinementOfTests(),
  });
  const served = await serve(app.handler, { host: config.host, port: config.port, portSetting: 'PORT' });
  served.unref();
  await app.work();
  let closing: Promise<void> | null = null;
  const close = () =>
    (closing ??= (async () => {
      await served.close(0);
      await app.close();
      await folder.remove();
    })());
  return { url: served.url, launchUrl: `${served.url}/launch`, close, [Symbol.asyncDispose]: close };
}
