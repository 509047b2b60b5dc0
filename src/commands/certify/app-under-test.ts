import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { KitError } from '../../contract/index.ts';

/** An app that the certifier started by a command of its user. */
export interface AppUnderTest {
  /** Rejects with `KitError` (`app_ended`) when the command ends by itself. */
  readonly ended: Promise<never>;
  /** Asks the app to end, with all that its command has started, and makes it after `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

/** Starts an app by a shell, as its user wrote the command. What it prints goes to stderr. Its settings are in `env`, since a process list shows arguments. */
export function startAppUnderTest(command: string, env: Readonly<Record<string, string>>): AppUnderTest {
  // A group of its own: what the shell has started ends with it.
  const child = spawn(command, {
    shell: true,
    stdio: ['ignore', 2, 2],
    detached: true,
    env: { ...process.env, ...env },
  });
  const signalGroup = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // It has ended.
    }
  };
  const killWithParent = () => signalGroup('SIGKILL');
  process.once('exit', killWithParent);
  let isStopped = false;
  const exited = once(child, 'exit').catch((error: unknown) => [error]);
  const ended = exited.then(([how]: unknown[]): Promise<never> => {
    if (isStopped) return new Promise(() => {});
    throw new KitError('app_ended', `--start ended with ${String(how)}, and no app runs: ${command}`);
  });
  ended.catch(() => {});
  return {
    ended,
    async stop(graceMs = 5_000) {
      isStopped = true;
      signalGroup('SIGTERM');
      const kill = setTimeout(killWithParent, graceMs);
      await exited;
      clearTimeout(kill);
      // The shell may be gone before what it has started.
      killWithParent();
      process.removeListener('exit', killWithParent);
    },
  };
}
