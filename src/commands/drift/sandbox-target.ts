import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import type { WireProfile } from '../../contract/index.ts';
import type { Target } from '../../drift/target.ts';
import { readSandboxConfig } from '../../sandbox/config.ts';
import { createSandbox } from '../../sandbox/create-sandbox.ts';
import { serve } from '../../serve.ts';
import { sandboxControl } from '../../testing/sandbox-control.ts';
import { confine } from '../confine.ts';

/** Nobody answers there, and nobody asks it: a launch needs an address. */
const noApp = 'http://127.0.0.1:9/launch';

/** A sandbox of its own, as something to probe. */
export async function sandboxTarget(
  folder: string,
  profile: WireProfile,
): Promise<{ readonly target: Target; close(): Promise<void> }> {
  const apiKey = randomBytes(32).toString('base64url');
  const adminKey = randomBytes(32).toString('base64url');
  const config = readSandboxConfig(
    {
      SANDBOX_API_KEY: apiKey,
      SANDBOX_ADMIN_KEY: adminKey,
      LOG_LEVEL: 'silent',
      CONFINEMENT: process.env['CONFINEMENT'],
    },
    { port: '0', data: folder, seed: 'demo' },
  );
  const sandbox = await createSandbox({
    config,
    confinement: await confine(config.confinement, [config.dataDir]),
    profile,
    log: pino({ level: 'silent' }),
  });
  const served = await serve(sandbox.handler, { host: '127.0.0.1', port: 0, portSetting: 'port' });
  sandbox.listensAt(served.url);
  const control = sandboxControl({ url: served.url, adminKey });
  let token: Promise<string> | null = null;
  return {
    target: {
      url: served.url,
      apiKey,
      profile,
      token: () => (token ??= control.launch(noApp).then((launch) => launch.token)),
      approve: async (operationId) => void (await control.approve(operationId)),
    },
    async close() {
      await served.close(0);
      await sandbox.close();
    },
  };
}
