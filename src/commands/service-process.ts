import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { KitError } from '../contract/index.ts';

/** Preload module, as for the servers that the npm scripts start. */
const preload = new URL('../../scripts/preload.mjs', import.meta.url).href;

/** Start-up limit. Only a hung process reaches it, even on a busy machine. */
const readyWithinMs = 10 * 60_000;

export interface ServiceProcess {
  readonly url: string;
  /** Rejects when the process ends by itself. */
  readonly ended: Promise<never>;
  /** Asks it to end, and makes it after `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

/** Readers of a service's output, line by line. Default: its log goes to this process's stderr, and its other output nowhere. */
export interface ServiceOutput {
  readonly onLog?: (line: string) => void;
  readonly onOutput?: (line: string) => void;
}

/**
 * Starts one of the kit's servers as a process of its own and waits for its `<name> ready <url>`. Secrets go in `env`, never in `args`: a process list shows those.
 */
export async function startService(
  name: 'app' | 'sandbox',
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { onLog, onOutput }: ServiceOutput = {},
): Promise<ServiceProcess> {
  const script = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, ['--import', preload, script, ...args], {
    // Shared settings are given here. A database, an admin key or an address of the user's own servers is none of them.
    env: {
      ...process.env,
      DATABASE_URL: '',
      DATABASE_URL_FILE: '',
      SANDBOX_ADMIN_KEY: '',
      SANDBOX_ADMIN_KEY_FILE: '',
      PUBLIC_URL: '',
      // A value that is passed here overrides its `_FILE` variable.
      ...Object.fromEntries(Object.keys(env).map((name) => [`${name}_FILE`, ''])),
      ...env,
    },
    // The channel carries nothing: its end tells the service that whoever started it is gone, kill -9 included.
    stdio: ['ignore', 'pipe', onLog ? 'pipe' : 'inherit', 'ipc'],
    // A group of its own: Ctrl-C reaches the demo alone, which then stops the servers in order.
    detached: true,
  });
  let isReady = false;
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once('error', (error) => resolve(error.message));
  });
  const ended = exited.then((how): never => {
    throw new KitError(
      'service_ended',
      isReady ? `the ${name} ended unexpectedly (${how})` : `the ${name} did not start: see its output above`,
    );
  });
  ended.catch(() => {});
  const killWithParent = () => child.kill('SIGKILL');
  process.once('exit', killWithParent);
  void exited.then(() => process.removeListener('exit', killWithParent));

  // Without descriptors left for them, Node makes no streams, and the child tells the error.
  if (onLog && child.stderr) createInterface({ input: child.stderr }).on('line', onLog);
  const { promise: ready, resolve, reject } = Promise.withResolvers<string>();
  const hung = setTimeout(() => {
    child.kill('SIGKILL');
    reject(new KitError('service_hung', `the ${name} was not ready within ${readyWithinMs / 60_000} minutes`));
  }, readyWithinMs);
  void Promise.race([ready, exited])
    .finally(() => clearTimeout(hung))
    .catch(() => {});
  const lines = child.stdout && createInterface({ input: child.stdout });
  lines?.on('line', (line) => {
    const url = new RegExp(`^${name} ready (\\S+)$`).exec(line)?.[1];
    if (!url) return onOutput?.(line);
    isReady = true;
    resolve(url);
  });
  return {
    url: await Promise.race([ready, ended]),
    ended,
    async stop(graceMs = 12_000) {
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(kill);
    },
  };
}
