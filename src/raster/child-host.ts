import { fork, type ChildProcess } from 'node:child_process';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KitError } from '../contract/kit-error.ts';
import type { FromChild, ToChild } from './child-protocol.ts';

/** What one child process may use. */
export interface ChildLimits {
  /** Default 1 hour. */
  readonly timeoutMs?: number;
  /** Resident set. Default 2 GiB. */
  readonly memoryBytes?: number;
  /** Size of the work folder. Default 64 GiB. */
  readonly diskBytes?: number;
}

export interface ChildJobOptions {
  /** Module whose default export is the `Job`. */
  readonly module: URL;
  /** Plain data. */
  readonly input: unknown;
  /** The child's own folder: its temporary files go there, and its size is limited. */
  readonly workFolder: string;
  readonly limits?: ChildLimits;
  readonly signal?: AbortSignal;
  readonly onProgress?: (fraction: number, note: string | null) => void;
  /** Resident set of the child, as sampled. */
  readonly onMemory?: (bytes: number) => void;
}

/** A job that failed by itself carries the code that it threw; the host's own codes are `job_crashed`, `job_timeout`, `job_memory_exceeded` and `job_disk_exceeded`. */
export class ChildJobError extends KitError {}

const defaults = { timeoutMs: 3_600_000, memoryBytes: 2 * 1024 ** 3, diskBytes: 64 * 1024 ** 3 };
const sampleEveryMs = 200;
/** After a cancel message, before SIGTERM; and after SIGTERM, before SIGKILL. */
const graceMs = 1_000;
const stderrTailBytes = 2_000;

/**
 * Runs one job in a process of its own, so that a crash, a leak or an endless loop of GDAL cannot touch
 * the server. Rejects with `ChildJobError`, or with the signal's reason after a cancel; when it settles
 * the child is gone.
 */
export async function runInChild<Output>(options: ChildJobOptions): Promise<Output> {
  options.signal?.throwIfAborted();
  const child = new ChildRunner(options.workFolder);
  try {
    return await child.run<Output>(options);
  } finally {
    await child.end();
  }
}

type Answer = Exclude<FromChild, { type: 'progress' }>;

/** One child process that runs jobs one after the other. It gets no secret: its environment is made anew. */
export class ChildRunner {
  #child: ChildProcess;
  #stderr = '';
  #gone: Promise<string>;
  #isGone = false;

  /** `tempFolder` is the child's working folder, and where GDAL puts temporary files. */
  constructor(tempFolder: string) {
    this.#child = fork(fileURLToPath(new URL('./child-entry.ts', import.meta.url)), [], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: childEnvironment(tempFolder),
      cwd: tempFolder,
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr = (this.#stderr + text).slice(-stderrTailBytes)));
    this.#gone = new Promise<string>((resolve) => {
      this.#child.once('error', () => resolve('an error at its start'));
      this.#child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    void this.#gone.then(() => (this.#isGone = true));
  }

  /** False once the process has ended: by a crash, a limit or a cancel. */
  get isAlive(): boolean {
    return !this.#isGone && this.#child.connected;
  }

  /** Runs one job; see `runInChild`. A job that crashed, was cancelled or went over a limit takes the process with it. */
  async run<Output>(options: ChildJobOptions): Promise<Output> {
    const limits = { ...defaults, ...options.limits };
    let ending: { error: unknown } | null = null;
    const killTimers: NodeJS.Timeout[] = [];
    const end = (error: unknown) => {
      if (ending) return;
      ending = { error };
      post(this.#child, { type: 'cancel', reason: String(error) });
      killTimers.push(setTimeout(() => this.#child.kill('SIGTERM'), graceMs), setTimeout(() => this.#child.kill('SIGKILL'), 2 * graceMs));
    };

    const onAbort = () => end(options.signal?.reason);
    options.signal?.addEventListener('abort', onAbort, { once: true });
    if (options.signal?.aborted) onAbort();
    const deadline = setTimeout(() => end(limitError('job_timeout', 'ran longer than', limits.timeoutMs, 'ms')), limits.timeoutMs);
    const watch = setInterval(() => void watchLimits(this.#child, options, limits, end), sampleEveryMs);

    try {
      const { answer, exit } = await this.#converse(options);
      if (ending !== null) {
        await this.end();
        throw (ending as { error: unknown }).error;
      }
      if (answer?.type === 'done') return answer.output as Output;
      if (answer?.type === 'failed') throw new ChildJobError(answer.code, answer.message, { status: 422, data: answer.data });
      throw new ChildJobError('job_crashed', `the process ended by ${exit} before it had a result`, { data: { stderr: this.#stderr } });
    } finally {
      clearTimeout(deadline);
      clearInterval(watch);
      killTimers.forEach(clearTimeout);
      options.signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Ends the process and waits until it is gone. */
  async end(): Promise<void> {
    post(this.#child, { type: 'end' });
    const term = setTimeout(() => this.#child.kill('SIGTERM'), graceMs);
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), 2 * graceMs);
    await this.#gone;
    clearTimeout(term);
    clearTimeout(kill);
  }

  /** Gives the child one job, and waits for its answer or its end. */
  async #converse(options: ChildJobOptions): Promise<{ answer: Answer | null; exit: string }> {
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const onMessage = (message: FromChild) => {
      if (message.type === 'progress') options.onProgress?.(message.fraction, message.note);
      else resolve(message);
    };
    this.#child.on('message', onMessage);
    post(this.#child, { type: 'start', module: options.module.href, input: options.input });
    try {
      return await Promise.race([promise.then((answer) => ({ answer, exit: '' })), this.#gone.then((exit) => ({ answer: null, exit }))]);
    } finally {
      this.#child.off('message', onMessage);
    }
  }
}

async function watchLimits(
  child: ChildProcess,
  options: ChildJobOptions,
  limits: Required<ChildLimits>,
  end: (error: unknown) => void,
): Promise<void> {
  const [memory, disk] = await Promise.all([residentBytes(child.pid), folderBytes(options.workFolder)]);
  options.onMemory?.(memory);
  if (memory > limits.memoryBytes) end(limitError('job_memory_exceeded', 'used more memory than', limits.memoryBytes, 'bytes'));
  if (disk > limits.diskBytes) end(limitError('job_disk_exceeded', 'wrote more to disk than', limits.diskBytes, 'bytes'));
}

function limitError(code: string, what: string, limit: number, unit: string): ChildJobError {
  return new ChildJobError(code, `the processing ${what} the ${limit} ${unit} it may`, { status: 422, data: { limit } });
}

function post(child: ChildProcess, message: ToChild): void {
  if (child.connected) child.send(message, () => {});
}

/** Resident set of a process; 0 where the system has no /proc, which leaves the memory limit to the operator. */
async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kib === undefined ? 0 : Number(kib) * 1024;
}

/** What was written there. Files that are lent, by a link, were not. */

/** Bytes of the files in a folder and below it, links and what goes away meanwhile not counted. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(entries.map((name) => lstat(join(folder, name)).then((s) => (s.isFile() && s.nlink === 1 ? s.size : 0), () => 0)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'GDAL_DATA', 'PROJ_LIB', 'PROJ_DATA', 'LD_LIBRARY_PATH'];

/** Where nobody listens: what GDAL might fetch, it cannot. */
const noNetwork = 'http://127.0.0.1:9';

/** Nothing of the server's environment that is not needed: keys stay out. GDAL is set to read only what it is told to. */
function childEnvironment(workFolder: string): NodeJS.ProcessEnv {
  return {
    ...Object.fromEntries(inherited.map((name) => [name, process.env[name]])),
    NODE_COMPILE_CACHE: getCompileCacheDir(),
    TMPDIR: workFolder,
    CPL_TMPDIR: workFolder,
    GDAL_CACHEMAX: '128',
    GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR',
    GDAL_PAM_ENABLED: 'NO',
    GDAL_HTTP_PROXY: noNetwork,
    http_proxy: noNetwork,
    https_proxy: noNetwork,
    all_proxy: noNetwork,
    GDAL_HTTP_MAX_RETRY: '0',
    CPL_VSIL_CURL_ALLOWED_EXTENSIONS: '.none',
    GDAL_NETCDF_VERIFY_DIMS: 'NO',
  };
}
