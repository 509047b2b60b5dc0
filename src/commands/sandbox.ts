import { resolve } from 'node:path';
import { pino } from 'pino';
import { readSandboxConfig } from '../sandbox/config.ts';
import { createSandbox } from '../sandbox/create-sandbox.ts';
import { callerFolder } from './arguments.ts';
import { confineSandbox } from './confine.ts';
import { importWithProgress } from './sandbox/import.ts';
import { defineCommand, stopOnSignal } from './command.ts';
import { logOutput, serve } from '../server/index.ts';
import { readWireProfile } from './wire-profile.ts';
import { scriptCommand } from '../files/index.ts';

const usage = `usage: ${scriptCommand('sandbox')} [options]: the platform on this machine

  --port N         Port to listen on (default: 4010; 0 takes any free one)
  --data DIR       Folder of its data (default: data/sandbox)
  --seed demo|none First content of an empty catalog (default: demo)
  --import PATH    Items, rasters, or a folder of a scene, for the catalog; repeatable
  --profile FILE   Its wire profile, a module or JSON (docs/wire-profile.md; default: that of the contract)

SANDBOX_API_KEY is the API key of apps; without it, the sandbox makes one and shows it once. SANDBOX_SEED, SANDBOX_CLOCK
(its first time), HOST, PUBLIC_URL, SANDBOX_ADMIN_KEY and more: docs/configuration.md. Pages for people are at its address, the control calls below /sandbox.`;

/** Umask of the server: its files are for its own user alone. */
const ownUmask = 0o077;

export default defineCommand(import.meta, {
  usage,
  options: {
    port: { type: 'string' },
    data: { type: 'string' },
    seed: { type: 'string' },
    import: { type: 'string', multiple: true, default: [] },
    profile: { type: 'string' },
  },
  async run({ values: { data, import: paths, profile: profileFile, ...others } }) {
    process.umask(ownUmask);
    const inCaller = (path: string) => resolve(callerFolder(), path);
    const config = readSandboxConfig(process.env, { ...others, ...(data !== undefined && { data: inCaller(data) }) });
    const output = logOutput();
    const log = pino({ level: config.logLevel, base: { service: 'sandbox' } }, output);
    const profile = profileFile === undefined ? undefined : await readWireProfile(profileFile, callerFolder());
    const confinement = await confineSandbox(config.confinement, [config.dataDir]);
    const sandbox = await createSandbox({ config, log, confinement, profile });
    for (const path of paths) await importWithProgress(sandbox, inCaller(path));
    const served = await serve(sandbox.handler, {
      host: config.host,
      port: config.port,
      portSetting: '--port',
      tls: config.tls,
    }).catch(async (error: unknown) => {
      await sandbox.close();
      throw error;
    });
    sandbox.listensAt(served.url);
    for (const weakness of confinement.weaknesses) log.warn({}, weakness);
    if (confinement.kind === 'absent')
      log.warn({}, `uploaded files are not inspected, and rasters are not drawn: ${confinement.summary}`);
    else log.info({ confinement: confinement.summary }, 'the sandbox opens foreign files in child processes');
    stopOnSignal(async () => {
      await served.close();
      await sandbox.close();
      await output.flush();
    });
    if (sandbox.madeApiKey !== null) {
      console.log(`api key ${sandbox.madeApiKey}`);
      console.log('  made because SANDBOX_API_KEY is not set; you see it only now; it is good for this data folder');
    }
    console.log(`sandbox ready ${served.url}`);
  },
});
