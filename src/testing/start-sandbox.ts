import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { assumedProfile, KitError, type WireProfile } from '../contract/index.ts';
import { establishConfinement, type Confinement } from '../child/index.ts';
import { scratchFolder, type ScratchFolder } from '../files/index.ts';
import { readSandboxConfig, type Seed } from '../sandbox/config.ts';
import { createSandbox, type Sandbox } from '../sandbox/create-sandbox.ts';
import { serve } from '../server/index.ts';
import { sandboxControl, type SandboxControl, type SandboxPermission } from './sandbox-control.ts';

/** Options of `startSandbox`. */
export interface StartSandboxOptions {
  /** Initial content of the catalog. Default: `none`, which starts at once. */
  readonly seed?: Seed;
  /** Items, rasters or folders of scenes, for the catalog. Default: none. */
  readonly imports?: readonly string[];
  /** The wire that it speaks, made of data. Default: as the contract assumes it. */
  readonly profile?: WireProfile | undefined;
  /** Port to listen on. Default: 0, any free port. */
  readonly port?: number;
  /** Permissions of `apiKey`. Default: `external_app` alone, and a call that needs another is answered with 403. */
  readonly permissions?: readonly SandboxPermission[];
  /** Further settings, by their names in docs/configuration.md. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The whole platform, in this process. It ends with the process, or by `close`; nothing of it stays. */
export interface RunningSandbox extends SandboxControl, AsyncDisposable {
  /** The spec's {base_url}: what an app is configured to. */
  readonly url: string;
  /** The key that apps call it with. `createKey` makes others. */
  readonly apiKey: string;
  /** The wire that it speaks. */
  readonly profile: WireProfile;
  close(): Promise<void>;
}

let confinement: Promise<Confinement> | null = null;

/** Confinement of foreign files, found out once for the process. */
export function confinementOfTests(): Promise<Confinement> {
  return (confinement ??= establishConfinement({ mode: 'auto', warn: (message) => console.warn(message) }));
}

/** Starts a sandbox for a test: `const platform = await startSandbox()`. */
export async function startSandbox(options: StartSandboxOptions = {}): Promise<RunningSandbox> {
  const folder = scratchFolder('test');
  try {
    return await startIn(folder, options);
  } catch (error) {
    await folder.remove().catch(() => {});
    throw error;
  }
}

async function startIn(folder: ScratchFolder, options: StartSandboxOptions): Promise<RunningSandbox> {
  const { seed = 'none', imports = [], profile = assumedProfile, port = 0, env = {} } = options;
  const { permissions = ['external_app'] } = options;
  const config = readSandboxConfig(
    {
      LOG_LEVEL: 'silent',
      SANDBOX_API_KEY: randomBytes(24).toString('base64url'),
      SANDBOX_API_KEY_PERMISSIONS: permissions.join(','),
      ...env,
    },
    { port: String(port), data: folder.path, seed },
  );
  const sandbox = await createSandbox({
    config,
    log: pino({ level: config.logLevel }),
    confinement: await confinementOfTests(),
    profile,
  });
  const served = await serve(sandbox.handler, { host: config.host, port: config.port, portSetting: 'port' }).catch(
    async (error: unknown) => {
      await sandbox.close();
      throw error;
    },
  );
  // A test that has ended is not kept from ending by a platform that nobody asks any more.
  served.unref();
  sandbox.listensAt(served.url);
  let closing: Promise<void> | null = null;
  const close = () =>
    (closing ??= (async () => {
      await served.close(0);
      await sandbox.close();
      await folder.remove();
    })());
  try {
    for (const path of imports) await importWhole(sandbox, path);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...sandboxControl({ url: served.url, adminKey: config.adminKey ?? undefined }),
    url: served.url,
    apiKey: config.apiKey!,
    profile,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Imports a file or folder. Throws `KitError` (`import_refused`) if the catalog refuses a part of it. */
async function importWhole(sandbox: Pick<Sandbox, 'importPath'>, path: string): Promise<void> {
  const refused: string[] = [];
  await sandbox.importPath(path, {
    onProgress: () => {},
    onRefused: (where, reason) => refused.push(`${where}: ${reason}`),
  });
  if (refused.length > 0) throw new KitError('import_refused', `${path} cannot be imported:\n${refused.join('\n')}`);
}
