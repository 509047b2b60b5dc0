import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import type { WireProfile } from '../contract/index.ts';
import { readSandboxConfig, type Seed } from '../sandbox/config.ts';
import { createSandbox } from '../sandbox/create-sandbox.ts';
import { serve } from '../serve.ts';
import { confine } from './confine.ts';

export interface OwnSandboxOptions {
  /** Its data folder. */
  readonly folder: string;
  readonly profile: WireProfile;
  /** Default: `demo`. */
  readonly seed?: Seed;
  /** Default: any free one. */
  readonly port?: string;
  /** Default: made. */
  readonly apiKey?: string | null;
}

/** A sandbox that a command has for itself. */
export interface OwnSandbox {
  readonly url: string;
  readonly apiKey: string;
  readonly adminKey: string;
  readonly close: () => Promise<void>;
}

/** Starts one in this process. Throws `KitError` where the port is taken. */
export async function startOwnSandbox({
  folder,
  profile,
  seed = 'demo',
  port = '0',
  apiKey: given = null,
}: OwnSandboxOptions): Promise<OwnSandbox> {
  const apiKey = given ?? randomBytes(32).toString('base64url');
  const adminKey = randomBytes(32).toString('base64url');
  const config = readSandboxConfig(
    {
      SANDBOX_API_KEY: apiKey,
      SANDBOX_ADMIN_KEY: adminKey,
      LOG_LEVEL: 'silent',
      ...Object.fromEntries(
        ['STEP_CONFINEMENT', 'CONFINEMENT_READS', 'NODE_ENV', 'DATABASE_URL'].map((name) => [name, process.env[name]]),
      ),
    },
    { port, data: folder, seed },
  );
  const sandbox = await createSandbox({
    config,
    confinement: await confine(config.confinement, [config.dataDir]),
    profile,
    log: pino({ level: 'silent' }),
  });
  const served = await serve(sandbox.handler, { host: '127.0.0.1', port: config.port, portSetting: '--port' });
  sandbox.listensAt(served.url);
  return {
    url: served.url,
    apiKey,
    adminKey,
    async close() {
      await served.close(0);
      await sandbox.close();
    },
  };
}
