import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { projectRoot } from './folders.ts';
import { cleanUpLater } from './cleanup.ts';

export interface Server {
  readonly url: string;
  readonly child: ChildProcess;
  /** Everything it has printed, both streams. */
  output(): string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** One of the kit's commands in `project` as a real process, killed when the test ends. */
export async function startServer(
  name: 'app' | 'sandbox',
  args: readonly string[],
  env: Record<string, string>,
  project = projectRoot,
): Promise<Server> {
  const { child, output, exited } = startCommand(name, args, env, project);
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const ready = new RegExp(`^${name} ready (\\S+)$`).exec(line)?.[1];
      if (ready) resolve(ready);
    });
    void exited.then((code) => reject(new Error(`${name} ended with ${code}: ${output()}`)));
  });
  return {
    url,
    child,
    output,
    async kill(signal) {
      child.kill(signal);
      await exited;
    },
  };
}

/** Any of the kit's commands, in `project`. Its environment is `env` and PATH, nothing of the test's own. */
export function startCommand(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
  project = projectRoot,
) {
  const preload = pathToFileURL(join(project, 'scripts', 'preload.mjs')).href;
  const child = spawn(
    process.execPath,
    ['--import', preload, join(project, 'src', 'commands', `${name}.ts`), ...args],
    {
      cwd: project,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  const exited = new Promise<number | NodeJS.Signals>((resolve) =>
    child.once('close', (code, signal) => resolve(signal ?? code ?? -1)),
  );
  cleanUpLater(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { child, output: () => text, exited };
}

/** Processes of this machine, in whichever namespace, whose arguments or environment name `folder`; this one left out. */
export function processesIn(folder: string): number[] {
  const names = (path: string) => {
    try {
      return readFileSync(path, 'utf8').includes(folder);
    } catch {
      return false; // It has ended, or is another user's.
    }
  };
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids.filter((pid) => pid !== process.pid && (names(`/proc/${pid}/cmdline`) || names(`/proc/${pid}/environ`)));
}
