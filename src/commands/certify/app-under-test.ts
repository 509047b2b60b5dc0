import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { messageOf } from '../../files/index.ts';
import { freePort } from '../free-port.ts';

/** An app that the certifier started by a command of its user. */
export interface AppUnderTest {
  /** Rejects with `KitError` (`app_ended`) if the command ends by itself. */
  readonly ended: Promise<never>;
  /** Exit code or signal of a command that ended by itself. Null while it runs. */
  readonly endedWith: string | null;
  /** Asks the app to end, with all that its command has started, and ends them after `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

const lookEveryMs = 50;
/** Time limit for the first answer of an app, in milliseconds. */
const appStartMs = 120_000;
/** Ends of the message about an app that does not answer yet. */
const startedHere = ', which --start starts';
const startedElsewhere = ': start it with this sandbox as its PLATFORM_URL';

/**
 * Starts an app by a shell, as its user wrote the command. What it prints goes to stderr. Its settings are in `env`, since a
 * process list shows arguments. It gets the environment of this process without the settings of the sandbox and the token of a launch.
 */
export function startAppUnderTest(command: string, env: Readonly<Record<string, string>>): AppUnderTest {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('SANDBOX_') && !name.startsWith('PLATFORM_TOKEN'),
  );
  const child = spawn(command, {
    shell: true,
    stdio: ['ignore', 2, 2],
    // A signal to this group reaches all that the shell has started.
    detached: true,
    env: { ...Object.fromEntries(inherited), ...env },
  });
  /** False if nothing of the group is left. */
  const signalGroup = (signal: NodeJS.Signals | 0): boolean => {
    try {
      return child.pid !== undefined && process.kill(-child.pid, signal);
    } catch {
      return false;
    }
  };
  const killWithParent = () => void signalGroup('SIGKILL');
  process.once('exit', killWithParent);
  let isStopped = false;
  let endedWith: string | null = null;
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once('error', (error) => resolve(error.message));
  });
  const ended = exited.then((how): Promise<never> => {
    if (isStopped) return new Promise(() => {});
    endedWith = how;
    throw new KitError('app_ended', `the command of --start ended (${how}), and no app runs`);
  });
  ended.catch(() => {});
  return {
    ended,
    get endedWith() {
      return endedWith;
    },
    async stop(graceMs = 5_000) {
      isStopped = true;
      signalGroup('SIGTERM');
      // The shell may be gone before what it has started.
      for (const endMs = performance.now() + graceMs; signalGroup(0) && performance.now() < endMs;)
        await sleep(lookEveryMs);
      killWithParent();
      await exited;
      process.removeListener('exit', killWithParent);
    },
  };
}

/**
 * Starts an app by a command, and waits until it answers. `launchUrl` null takes a free port. `stops` receives the stop of the app, first.
 * Throws `KitError` if something answers there already, or if the app ends.
 */
export async function startByCommand(
  command: string,
  launchUrl: string | null,
  platform: { readonly url: string; readonly apiKey: string },
  { stops, signal }: { readonly stops: (() => Promise<unknown>)[]; readonly signal: AbortSignal },
): Promise<{ readonly launchUrl: string; readonly app: AppUnderTest }> {
  const address = launchUrl ?? `http://127.0.0.1:${await freePort()}/launch`;
  const { protocol, origin, port } = new URL(address);
  if (await answersAt(origin))
    throw new KitError('port_taken', `something answers at ${origin} already: stop it, or leave out --start`);
  const app = startAppUnderTest(command, {
    PLATFORM_URL: platform.url,
    PLATFORM_API_KEY: platform.apiKey,
    PORT: port || (protocol === 'https:' ? '443' : '80'),
  });
  stops.unshift(() => app.stop());
  const waiting = new AbortController();
  try {
    await Promise.race([waitForApp(address, AbortSignal.any([signal, waiting.signal]), startedHere), app.ended]);
  } finally {
    waiting.abort();
  }
  void app.ended.catch((error: unknown) => console.error(messageOf(error)));
  return { launchUrl: address, app };
}

async function answersAt(origin: string): Promise<boolean> {
  try {
    await (await fetch(origin, { redirect: 'manual', signal: AbortSignal.timeout(5_000) })).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/** Until anything answers there: the app may be started when the key is known. Throws `KitError`. */
export async function waitForApp(launchUrl: string, signal: AbortSignal, advice = startedElsewhere): Promise<void> {
  const origin = new URL(launchUrl).origin;
  const giveUpAt = performance.now() + appStartMs;
  for (let told = false; ; told = true) {
    if (await answersAt(origin)) return;
    signal.throwIfAborted();
    if (!told) console.log(`waiting up to ${appStartMs / 1000} s for an app at ${origin}${advice}`);
    if (performance.now() > giveUpAt)
      throw new KitError(
        'app_away',
        `nothing answers at ${origin}: start the app under test there, configured to this platform, and run certify again`,
      );
    await sleep(500, undefined, { signal });
  }
}
