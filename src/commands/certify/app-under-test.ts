import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';

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

/**
 * Starts an app by a shell, as its user wrote the command. What it prints goes to stderr. Its settings are in `env`, since a
 * process list shows arguments. It gets the environment of this process without the settings of the sandbox.
 */
export function startAppUnderTest(command: string, env: Readonly<Record<string, string>>): AppUnderTest {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SANDBOX_'));
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
