import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import type { WireProfile, Permission } from '../contract/index.ts';
import { readSandboxConfig, type Seed } from '../sandbox/config.ts';
import type { Confinement } from '../child/index.ts';
import { createSandbox, type Sandbox } from '../sandbox/create-sandbox.ts';
import { logOutput, serve } from '../server/index.ts';
import { confineSandbox } from './confine.ts';

interface OwnSandboxOptions {
  /** Its data folder. */
  readonly folder: string;
  readonly profile: WireProfile;
  /** Default: `demo`. */
  readonly seed?: Seed;
  /** Default: any free one. */
  readonly port?: string;
  /** Default: `SANDBOX_API_KEY` of the settings; else made. */
  readonly apiKey?: string | null;
  /** Permissions of the app's key. Default: all. */
  readonly permissions?: readonly Permission[] | undefined;
  /** Environment variables of the sandbox. Ignores the admin key. Default: this process's confinement settings. */
  readonly settings?: NodeJS.ProcessEnv;
}

/** A sandbox that a command has for itself. */
interface OwnSandbox {
  readonly url: string;
  readonly apiKey: string;
  readonly adminKey: string;
  /** False if the settings contain the API key. */
  readonly isKeyMade: boolean;
  readonly platform: Sandbox;
  readonly confinement: Confinement;
  readonly close: () => Promise<void>;
}

/**
 * Starts a sandbox in this process. Its control calls always need a random key, so an app on this machine cannot approve its own
 * operations. Throws `KitError` if the port is taken.
 */
export async function startOwnSandbox({
  folder,
  profile,
  seed = 'demo',
  port = '0',
  apiKey: given = null,
  settings = confining(),
  permissions,
}: OwnSandboxOptions): Promise<OwnSandbox> {
  const adminKey = randomBytes(32).toString('base64url');
  const config = readSandboxConfig(
    {
      ...settings,
      ...(given !== null && { SANDBOX_API_KEY: given, SANDBOX_API_KEY_FILE: '' }),
      ...(permissions && { SANDBOX_API_KEY_PERMISSIONS: permissions.join(',') }),
      SANDBOX_ADMIN_KEY: adminKey,
      SANDBOX_ADMIN_KEY_FILE: '',
    },
    { port, data: folder, seed },
  );
  const apiKey = config.apiKey ?? randomBytes(32).toString('base64url');
  const confinement = await confineSandbox(config.confinement, [config.dataDir]);
  const platform = await createSandbox({
    config: { ...config, apiKey },
    confinement,
    profile,
    log: pino({ level: config.logLevel, base: { service: 'sandbox' } }, logOutput()),
  });
  const served = await serve(platform.handler, {
    host: config.host,
    port: config.port,
    portSetting: '--port',
  }).catch(async (error: unknown) => {
    await platform.close();
    throw error;
  });
  platform.listensAt(served.url);
  return {
    url: served.url,
    apiKey,
    adminKey,
    isKeyMade: config.apiKey === null,
    platform,
    confinement,
    async close() {
      await served.close(0);
      await platform.close();
    },
  };
}

/** Returns this process's confinement settings. */
function confining(): NodeJS.ProcessEnv {
  const names = ['STEP_CONFINEMENT', 'CONFINEMENT_READS', 'NODE_ENV', 'DATABASE_URL'];
  return { LOG_LEVEL: 'silent', ...Object.fromEntries(names.map((name) => [name, process.env[name]])) };
}
