import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex, Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { filterDescriptor, type ChildPlace } from './bubblewrap.ts';
import type { ChildGroup } from './cgroup.ts';
import { Channel, channelDescriptor } from './channel.ts';
import type { Confinement } from './confinement.ts';
import type { ChildJob } from './child-job.ts';
import {
  diskExceeded,
  diskFull,
  isDiskFull,
  ChildJobError,
  defaultLimits,
  limitError,
  LimitWatch,
  tasksOf,
  type ChildLimits,
  type ChildUsage,
} from './limits.ts';
import { LineSplitter } from './line-splitter.ts';
import { firstChildOf, hasEnded, processTree, type KnownProcess } from './process-tree.ts';
import { folderUse } from '../files/index.ts';
import { childLimits, fromChild, type FromChild, type ToChild } from './protocol.ts';
import { ReportedJobError } from './reported-error.ts';

/** Share of the limit for one file. The last write may have been cut off entirely. */
const almostFull = 0.9;
/** Share of the memory limit from which on an allocation may fail. */
const muchMemory = 0.4;
/** After a cancel message, before SIGKILL. */
const graceMs = 1_000;
/** By then bubblewrap has made its namespaces, or never will. */
const startMs = 500;
const killAgainMs = 5;
/** Wait for output that a process wrote before it ended and that may still be on its way. */
const drainMs = 200;
const stderrTailBytes = 2_000;
const printedBytesEachTick = 1024 * 1024;
const printedTickMs = 100;

type Answer = Exclude<FromChild, { type: 'ready' | 'progress' | 'ask' }>;
type Job = ChildJob & { readonly paths: readonly string[] };

/** The state of one job's requests. */
interface Asking {
  /** Aborted when the job has ended. */
  readonly over: AbortController;
  isBusy: boolean;
}

export interface RunnerOptions {
  readonly confinement: Confinement;
  readonly place: ChildPlace;
  readonly limits?: ChildLimits | undefined;
  readonly onPrinted?: ((line: string) => void) | undefined;
  readonly inspectPort?: number | undefined;
}

/** One child process that runs jobs one after the other. It gets no secret: its environment is made anew. */
export class ChildRunner {
  static #living = new Set<ChildRunner>();
  /** Runs when this process exits. A child that went on until then would write into folders that other exit handlers remove. */
  static #killAll = () => ChildRunner.#living.forEach((childRunner) => childRunner.#kill());

  #child: ChildProcess;
  #channel: Channel;
  #onMessage: (message: unknown) => void = () => {};
  #isConfined: boolean;
  #limits: Required<ChildLimits>;
  #workFolder: string;
  #startedMs = performance.now();
  #stderr = '';
  #gone: Promise<string>;
  #isGone = false;
  #watch: LimitWatch;
  /** Ends that are due. */
  #timers: NodeJS.Timeout[] = [];
  /** Reason why the process is being ended. Null if it may continue. */
  #ending: { readonly error: unknown } | null = null;
  #onUsage: ((usage: ChildUsage) => void) | undefined;
  /** The kernel's own hold on the tree, where there is one. */
  #group: ChildGroup | null;
  #ranOutOfMemory = false;
  /** Its own code has begun: before that, only the machine can have ended it. */
  #isReady = false;
  #ready = Promise.withResolvers<void>();
  /** First process of the child's PID namespace. Null if the child is not confined. */
  #first: KnownProcess | null = null;

  constructor({ confinement, place, limits, onPrinted, inspectPort }: RunnerOptions) {
    this.#isConfined = confinement.kind === 'bubblewrap';
    this.#limits = { ...defaultLimits, ...limits };
    this.#workFolder = place.workFolder;
    const { memoryBytes, diskBytes, processes } = this.#limits;
    this.#group = confinement.group({ memoryBytes, tasks: tasksOf(processes) });
    const [program = process.execPath, ...args] = confinement.command(place, { memoryBytes, fileBytes: diskBytes });
    if (inspectPort !== undefined) args.push(`--inspect-brk=127.0.0.1:${inspectPort}`);
    this.#child = this.#started(program, [...args, fileURLToPath(new URL('./entry.ts', import.meta.url))], {
      env: { ...confinement.environment(place.workFolder) },
      cwd: place.workFolder,
      stdio: ['ignore', onPrinted ? 'pipe' : 'ignore', 'pipe', 'pipe', confinement.filter === null ? 'ignore' : 'pipe'],
      // A group of its own: what an unconfined child has started ends with it.
      detached: true,
    });
    if (confinement.filter !== null)
      // A pipe, by `stdio` above.
      (this.#child.stdio[filterDescriptor] as Writable).on('error', () => {}).end(confinement.filter);
    // The channel ended although the child has not: do not trust the child any further.
    this.#channel = new Channel(
      this.#child.stdio[channelDescriptor] as Duplex, // pipe, by `stdio` above
      (message) => {
        if (this.#isReady) this.#onMessage(message);
        else if (fromChild.safeParse(message).data?.type === 'ready') this.#becomeReady();
        else this.#stopNow(new ChildJobError('job_crashed', 'the process was ended: it sent no valid answer'));
      },
      (fault) => fault !== null && this.#stopNow(new ChildJobError('job_crashed', `the process was ended: ${fault}`)),
      childLimits,
    );
    if (this.#child.pid !== undefined) this.#group?.add(this.#child.pid);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream === null) continue;
      const lines = onPrinted && new LineSplitter(onPrinted);
      readSlowly(stream, (text) => {
        lines?.add(text);
        if (stream === this.#child.stderr) this.#stderr = (this.#stderr + text).slice(-stderrTailBytes);
      });
      if (lines) stream.on('end', () => lines.end());
    }
    this.#gone = new Promise<string>((resolve) => {
      this.#child.once('error', (error: NodeJS.ErrnoException) => resolve(`an error at its start (${error.code})`));
      this.#child.once(
        'exit',
        (code, signal) => void this.#drained().then(() => resolve(signal ?? describeExit(code, this.#isConfined))),
      );
    });
    if (ChildRunner.#living.size === 0) process.prependListener('exit', ChildRunner.#killAll);
    ChildRunner.#living.add(this);
    void this.#gone.then(() => {
      this.#isGone = true;
      ChildRunner.#living.delete(this);
      if (ChildRunner.#living.size === 0) process.removeListener('exit', ChildRunner.#killAll);
      this.#watch.stop();
      this.#timers.forEach(clearTimeout);
      this.#ranOutOfMemory = this.#group?.ranOutOfMemory() ?? false;
      this.#group?.remove();
    });
    this.#watch = new LimitWatch({
      pid: this.#child.pid,
      workFolder: this.#workFolder,
      limits: this.#limits,
      onUsage: (usage) => this.#onUsage?.(usage),
      onOver: (error) => this.#stopNow(error),
    });
  }

  #becomeReady(): void {
    this.#isReady = true;
    if (this.#isConfined && this.#child.pid !== undefined) this.#first = firstChildOf(this.#child.pid);
    this.#ready.resolve();
  }

  /** False once the process has ended: by a crash, a limit or a cancel. */
  get isAlive(): boolean {
    return !this.#isGone && this.#ending === null && this.#channel.isOpen;
  }

  /**
   * Runs one job; see `runInChild`. A job that crashed, was cancelled or went over a limit takes the process with it.
   * `timeoutMs` counts from here. Call `requireDiskLimit` before you take anything from the work folder.
   */
  async run<Output>(job: Job): Promise<Output> {
    if (await isDiskFull(this.#workFolder)) throw diskFull();
    const onAbort = () => this.#stop(job.signal?.reason);
    job.signal?.addEventListener('abort', onAbort, { once: true });
    if (job.signal?.aborted) onAbort();
    const { timeoutMs } = this.#limits;
    const deadline = setTimeout(
      () => this.#stop(limitError('job_timeout', 'ran longer than', timeoutMs, 'ms')),
      timeoutMs,
    );
    this.#onUsage = job.onUsage;
    try {
      const { answer, exit } = await this.#converse(job);
      if (answer !== null) this.#watch.measure();
      if (this.#ending !== null) {
        await this.end();
        throw this.#ending.error;
      }
      // Between two looks of the watch it may have filled up.
      if (answer !== null && (await isDiskFull(this.#workFolder))) throw diskFull();
      if (answer?.type === 'done') return answer.output as Output; // the type that the caller's job has
      await this.requireDiskLimit();
      // A library or a program reports a write without room, or one that the limit has cut short, as its own error.
      if (answer?.type === 'failed' && this.#watch.hasSeenScarceDisk) throw diskFull();
      if (answer?.type === 'failed' && this.#isFileFull()) throw this.#fileTooLarge();
      if (answer?.type === 'failed') throw new ReportedJobError(answer);
      throw this.#crash(exit);
    } finally {
      clearTimeout(deadline);
      this.#onUsage = undefined;
      job.signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Throws `ChildJobError` if the work folder takes up more than it may. The watch looks only now and then. */
  async requireDiskLimit(): Promise<void> {
    const { diskBytes } = this.#limits;
    const { bytes, largestFileBytes } = await folderUse(this.#workFolder);
    this.#watch.largestFileBytes = Math.max(this.#watch.largestFileBytes, largestFileBytes);
    if (bytes > diskBytes) throw diskExceeded(diskBytes);
  }

  /** Ends the process and all that it has started, and waits until they are gone. */
  async end(): Promise<void> {
    this.#post({ type: 'end' });
    const kill = setTimeout(() => this.#kill(), graceMs);
    await this.#gone;
    clearTimeout(kill);
  }

  /** Asks the job to stop, and kills it where it does not. */
  #stop(error: unknown): void {
    if (this.#ending) return;
    this.#ending = { error };
    this.#post({ type: 'cancel', reason: String(error) });
    this.#timers.push(setTimeout(() => this.#kill(), graceMs));
  }

  /** Ends it at once: what takes too much is not asked. */
  #stopNow(error: unknown): void {
    this.#ending ??= { error };
    this.#kill();
  }

  /** Bubblewrap's second process is the first of the namespace: with it the kernel ends all of them, and then the first follows by itself. */
  #kill(): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#isGone) return;
    const [, ...descendants] = processTree(pid);
    // Bubblewrap itself, killed just as it makes its second process, would leave that one behind, waiting for it.
    const isStarting = this.#isConfined && descendants.length === 0 && performance.now() - this.#startedMs < startMs;
    if (isStarting) return void this.#timers.push(setTimeout(() => this.#kill(), killAgainMs));
    if (!this.#isConfined || descendants.length === 0) descendants.push(pid);
    for (const descendant of descendants) signal(descendant);
  }

  /** Gives the child one job, and waits for its answer or its end. */
  async #converse(job: Job): Promise<{ answer: Answer | null; exit: string }> {
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const asking: Asking = { over: new AbortController(), isBusy: false };
    // A job may end the process at once. By then its namespace must be known.
    await Promise.race([this.#ready.promise, this.#gone]);
    // A cancelled job does not start.
    if (this.#ending !== null) return { answer: null, exit: '' };
    this.#onMessage = (message) => {
      const read = fromChild.safeParse(message);
      if (!read.success)
        return this.#stopNow(new ChildJobError('job_crashed', 'the process was ended: it sent no valid answer'));
      if (read.data.type === 'progress') job.onProgress?.(read.data.fraction, read.data.note);
      else if (read.data.type === 'ask') void this.#answer(job, read.data, asking);
      else if (read.data.type !== 'ready') resolve(read.data);
    };
    this.#post({
      type: 'start',
      module: job.module.href,
      input: job.input,
      files: job.paths,
      workFolder: this.#workFolder,
    });
    try {
      return await Promise.race([
        promise.then((answer) => ({ answer, exit: '' })),
        this.#gone.then((exit) => ({ answer: null, exit })),
      ]);
    } finally {
      asking.over.abort(new Error('the job is over'));
      this.#onMessage = () => {};
    }
  }

  /** Answers a question of the job, or ends it. */
  async #answer(job: Job, { id, question }: Extract<FromChild, { type: 'ask' }>, asking: Asking): Promise<void> {
    try {
      if (!job.onAsk || asking.isBusy)
        throw new ChildJobError('job_crashed', 'the process was ended: it asked what nobody answers');
      asking.isBusy = true;
      const answer = await job.onAsk(
        question,
        AbortSignal.any([asking.over.signal, ...(job.signal ? [job.signal] : [])]),
      );
      // A child that does not take its answer gets no other.
      const message: ToChild = { type: 'answer', id, answer };
      await this.#channel.send(message);
      asking.isBusy = false;
    } catch (error) {
      if (!asking.over.signal.aborted) this.#stopNow(error);
    }
  }

  #post(message: ToChild): void {
    void this.#channel.send(message);
  }

  #fileTooLarge(): ChildJobError {
    return limitError('job_disk_exceeded', 'wrote a larger file than', this.#limits.diskBytes, 'bytes');
  }

  /** True if the largest file was so close to its limit that a library's next write would have exceeded it. */
  #isFileFull(): boolean {
    return this.#watch.largestFileBytes >= this.#limits.diskBytes * almostFull;
  }

  /** Describes an end that nobody asked for. The kernel ends a process in its own ways when it exceeds a kernel limit. */
  #crash(exit: string): ChildJobError {
    const data = { stderr: this.#stderr };
    // Exits and words are the child's own, so the host's looks decide.
    if (exit === 'SIGXFSZ' && this.#isFileFull()) return this.#fileTooLarge();
    const hasMuch = this.#watch.peakBytes > this.#limits.memoryBytes * muchMemory;
    const saysSo = /out of memory|allocation failed|bad_alloc|cannot allocate memory/i.test(this.#stderr);
    if (this.#ranOutOfMemory || (saysSo && hasMuch))
      return limitError('job_memory_exceeded', 'used more memory than', this.#limits.memoryBytes, 'bytes');
    if (!this.#isReady)
      return new ChildJobError('job_not_started', `no process could be started here: ${this.#lastLine() ?? exit}`, {
        kind: 'transient',
        data,
      });
    return new ChildJobError('job_crashed', `the process ended by ${exit} before it had a result`, { data });
  }

  /** Throws `ChildJobError`, kind `transient`, for a resource that the machine lacks. A missing program is reported later. */
  #started(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
    try {
      const child = spawn(program, args, options);
      // Without descriptors for its streams, Node makes none of them.
      if ((child.stdio as typeof child.stdio | undefined)?.[channelDescriptor]) return child;
      child.on('error', () => {});
      throw Object.assign(new Error(), { code: 'EMFILE' });
    } catch (error) {
      this.#group?.remove();
      // `spawn` throws the system's errors.
      const { code, message } = error as NodeJS.ErrnoException;
      throw new ChildJobError('job_not_started', `no process could be started here (${code ?? message})`, {
        kind: 'transient',
      });
    }
  }

  #lastLine(): string | undefined {
    return this.#stderr.trim().split('\n').at(-1) || undefined;
  }

  /** After the exit: ends the processes that it left behind, which may hold its streams, and waits until they are gone. */
  async #drained(): Promise<void> {
    const { pid, stdout, stderr } = this.#child;
    const closed = new Promise<void>((resolve) => this.#child.once('close', () => resolve()));
    if (!this.#isConfined && pid !== undefined) signal(-pid);
    // Bubblewrap exits with the program, and the kernel ends the rest of the namespace only then.
    for (; this.#first && !hasEnded(this.#first); await sleep(killAgainMs)) signal(this.#first.pid);
    await Promise.race([closed, sleep(drainMs)]);
    stdout?.destroy();
    stderr?.destroy();
  }
}

/** Text of a stream that anybody may write anything into: at most so many bytes are taken each tenth of a second. */
function readSlowly(stream: Readable, take: (text: string) => void): void {
  let left = printedBytesEachTick;
  const tick = setInterval(() => {
    left = printedBytesEachTick;
    stream.resume();
  }, printedTickMs);
  tick.unref();
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    take(text);
    if ((left -= text.length) < 0) stream.pause();
  });
  stream.once('close', () => clearInterval(tick));
}

function describeExit(code: number | null, isConfined: boolean): string {
  // Bubblewrap says as a shell does by which signal its command ended.
  const number = isConfined && code !== null && code > 128 ? code - 128 : 0;
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `exit code ${code}`;
}

/** A process that is gone already needs none. */
function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
