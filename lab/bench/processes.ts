import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Preload module, as for the servers that the npm scripts start. */
const preload = new URL('../../scripts/preload.mjs', import.meta.url).href;

/** USER_HZ: 100 on every Linux. */
const ticksPerSecond = 100;

export interface BenchProcess {
  readonly url: string;
  readonly pid: number;
  /** Highest resident set so far, in MiB (Linux: VmHWM). */
  peakMiB(): number;
  /** Resident set, in MiB (Linux: VmRSS). */
  residentMiB(): number;
  /** CPU time of the process's threads so far, in user and system mode (Linux: /proc/PID/stat). */
  cpuSeconds(): number;
  stop(): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** `onLog` receives the text that the process writes to stderr; without it, stderr is shown. */
export interface ProcessOptions {
  readonly onLog?: ((text: string) => void) | undefined;
}

/** Starts a script of the bench or the kit and waits for its `<name> ready <url>`. */
export async function startProcess(
  script: URL,
  name: string,
  args: readonly string[],
  env: Record<string, string>,
  { onLog }: ProcessOptions = {},
): Promise<BenchProcess> {
  // A peer runs as its own documents start it.
  const settings = name === 'peer' ? [] : ['--import', preload];
  const child = spawn(process.execPath, [...settings, script.pathname, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', onLog ? 'pipe' : 'inherit'],
  });
  child.stderr?.on('data', (bytes: Buffer) => onLog?.(bytes.toString()));
  const killWithParent = () => child.kill('SIGKILL');
  process.once('exit', killWithParent);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await exited;
    process.removeListener('exit', killWithParent);
  };
  const url = await readyUrl(child, name);
  const mebibytes = (line: 'VmHWM' | 'VmRSS') =>
    Number(new RegExp(`^${line}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) /
    1024;
  return {
    url,
    pid: child.pid!,
    peakMiB: () => mebibytes('VmHWM'),
    residentMiB: () => mebibytes('VmRSS'),
    cpuSeconds() {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

function readyUrl(child: ChildProcess, name: string): Promise<string> {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const url = new RegExp(`^${name} ready (\\S+)$`).exec(line)?.[1];
      if (url) resolve(url);
    });
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)));
  });
}
