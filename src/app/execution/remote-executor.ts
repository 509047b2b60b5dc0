import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { abortableSleep } from '../../platform-client/index.ts';
import { ChildJobError, defaultLimits, limitError, ReportedJobError, type ChildLimits } from '../../child/index.ts';
import { removeFolder } from '../../files/index.ts';
import { outputsOf } from '../../steps/step.ts';
import {
  RunReleased,
  type ExecutedStep,
  type ExecutorOptions,
  type ExecutorTask,
  type StepExecutor,
} from '../processing/step-executor.ts';
import type { StageLog } from '../runs/stages/stage.ts';
import type { JobDesk, OpenJob } from './job-desk.ts';
import type { JobRecord, JobRecords } from './job-records.ts';
import { hashOf, jobName, type HostCode, type JobResult, type SealedJob } from './sealed-job.ts';
import { EngineError, type EngineState, type StepEngine } from './step-engine.ts';

export interface RemoteExecutorOptions {
  readonly engine: StepEngine;
  readonly desk: JobDesk;
  readonly records: JobRecords;
  /** Addresses under which executors reach this process and, after the first, any process of the app. */
  readonly addresses: readonly [string, ...string[]];
  readonly log: StageLog;
  /** Default: `defaultPatience`. */
  readonly patience?: Partial<typeof defaultPatience>;
}

/** Memory of a job in addition to that of its step: for the process that fetches, watches and sends. */
const memoryBesideStep = 512 * 1024 ** 2;
/** Time of a job in addition to that of its step: for start, inputs and outputs. */
const timeBesideStepMs = 30 * 60_000;
/** Times, in milliseconds. */
const defaultPatience = {
  /** A job that its engine does not show yet, or no more, counts as lost after this time. The answer may be on its way. */
  lostAfterMs: 30_000,
  /** A job that its engine shows as running, and that has not been heard of for this time, counts as lost. */
  silentAfterMs: 20 * 60_000,
  /** A job that runs for this time without a call is worth a warning. */
  muteAfterMs: 60_000,
  /** An engine that does not answer is asked again for this time. */
  engineAwayMs: 10 * 60_000,
};
const sweepEveryMs = 60_000;
/** Longest wait, when the app closes, for the end of jobs. */
const closeWithinMs = 3_000;

/** News of a job. */
interface Heard {
  atMs: number;
  /** An executor has begun. */
  hasBegun: boolean;
}

/** Gives steps to an engine outside the app. Bytes are passed by this process, which owns the run, and no folder is shared. */
export class RemoteExecutor implements StepExecutor {
  readonly #options: RemoteExecutorOptions;
  readonly #sweeping: NodeJS.Timeout;
  #sweep: Promise<void> | null = null;
  /** Jobs that are being ended. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: RemoteExecutorOptions) {
    this.#options = options;
    this.#sweeping = setInterval(() => {
      this.#sweep ??= this.#endJobsOfEndedRuns().finally(() => (this.#sweep = null));
    }, sweepEveryMs);
    this.#sweeping.unref();
  }

  async run(task: ExecutorTask, options: ExecutorOptions): Promise<ExecutedStep> {
    const { signal, onProgress, onPrinted, onBegun } = options;
    signal.throwIfAborted();
    const outputFolder = join(task.workFolder, 'step');
    await removeFolder(outputFolder);
    await mkdir(outputFolder, { recursive: true });
    const { record, token } = await unlessAborted(this.#recordOf(task), signal);
    const { promise: answered, resolve: onResult, reject: onFailed } = Promise.withResolvers<JobResult>();
    answered.catch(() => {});
    const heard: Heard = { atMs: performance.now(), hasBegun: record.sessionHash !== null };
    const job: OpenJob = {
      ...record,
      sealed: this.#seal(task, record.name),
      inputPaths: task.sources.flatMap(({ paths }) => paths),
      outputNames: outputsOf(task.step).map(([, { fileName }]) => fileName),
      outputFolder,
      outputBytes: task.limits?.diskBytes ?? defaultLimits.diskBytes,
      onProgress: ({ fraction, note, printed }) => {
        if (!heard.hasBegun) onBegun?.();
        Object.assign(heard, { atMs: performance.now(), hasBegun: true });
        onProgress(fraction, note);
        for (const line of printed) onPrinted?.(line);
      },
      onResult,
      onFailed,
    };
    this.#options.desk.open(job);
    const over = new AbortController();
    const watching = AbortSignal.any([signal, over.signal]);
    const submitted = token === null ? Promise.resolve() : this.#submit(task, record.name, token);
    submitted.catch(() => {});
    try {
      await unlessAborted(submitted, signal);
      const result = await Promise.race([answered, this.#watch(task, record.name, heard, watching, onProgress)]);
      return await read(result, task);
    } finally {
      over.abort(new Error('the job is over'));
      this.#options.desk.close(job);
      // A later owner of the run finds the job by its record. A run that continues does not wait for the engine.
      if (!(signal.reason instanceof RunReleased)) this.#forgetAfter(submitted, record.name);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    const ended = Promise.allSettled([...this.#ending, this.#sweep]);
    await Promise.race([ended, sleep(closeWithinMs, undefined, { ref: false })]);
    await this.#options.engine.close?.();
  }

  /** The job that an earlier owner of the run has begun, if it does the same and its engine still has it; otherwise a new one, with its token. */
  async #recordOf(task: ExecutorTask): Promise<{ record: JobRecord; token: string | null }> {
    const { engine, records, addresses } = this.#options;
    const ownerUrl = addresses[0];
    // 0 is the run as a whole.
    const part = task.tile?.type === 'part' ? task.tile.number + 1 : 0;
    // Addresses and limits of owners differ, and change no result.
    const sealedHash = hashOf(JSON.stringify({ ...this.#seal(task, ''), addresses: [], limits: {} }));
    const earlier = task.run && (await records.ofRun(task.run.id, part));
    if (earlier) {
      const state = await engine.state(earlier.name).catch((error: unknown) => engineAway(engine, error));
      const isUnderWay = state === 'waiting' || state === 'running';
      const record =
        isUnderWay && earlier.sealedHash === sealedHash ? await records.takeOver(earlier.name, ownerUrl) : null;
      if (record) {
        this.#options.log.info({ job: record.name, state }, 'attached to the job of an earlier attempt');
        return { record, token: null };
      }
      await this.#forget(earlier.name, earlier.ownerUrl);
    }
    const token = randomBytes(32).toString('base64url');
    const name = jobName(token);
    const runId = task.run?.id ?? name;
    const record = { runId, part, name, tokenHash: hashOf(token), sessionHash: null, sealedHash, ownerUrl };
    await records.put(record);
    return { record, token };
  }

  #seal({ parameters, provenance, sources, tile, limits = {} }: ExecutorTask, name: string): SealedJob {
    const { id, version, code } = provenance.known.step;
    return {
      format: 1,
      name,
      addresses: this.#options.addresses.slice(1),
      step: { id, version, code },
      software: { ...provenance.known.software },
      parameters: { ...parameters },
      provenance: { known: provenance.known, inputs: provenance.inputs },
      inputs: sources.map(({ name: input, kind, synthetic, paths, ofItems }, i) => ({
        ...{ name: input, kind, synthetic: synthetic && { ...synthetic } },
        ...(ofItems && { ofItems }),
        files: paths.map((path, j) => ({
          fileName: basename(path),
          sizeBytes: provenance.inputs[i]?.files[j]?.sizeBytes ?? 0,
        })),
      })),
      ...(tile?.type === 'part' && { tile: { ...tile } }),
      limits: definedLimits(limits),
    };
  }

  async #submit({ step, limits }: ExecutorTask, name: string, token: string): Promise<void> {
    const { engine, addresses } = this.#options;
    const { memoryBytes, timeoutMs, diskBytes } = { ...defaultLimits, ...limits };
    await engine
      .submit({
        name,
        environment: { STEP_JOB_URL: `${addresses[0]}/jobs/${name}`, STEP_JOB_TOKEN: token },
        memoryBytes: memoryBytes + memoryBesideStep,
        cores: step.requires?.cores ?? 1,
        timeoutMs: timeoutMs + timeBesideStepMs,
        diskBytes,
        label: step.requires?.label ?? null,
      })
      .catch((error: unknown) => engineAway(engine, error));
    this.#options.log.info({ job: name, stepId: step.id }, 'gave a step to the engine');
  }

  /** Watches the job at its engine. Rejects when it is lost, late or out of memory, or the signal is aborted. */
  async #watch(
    { limits }: ExecutorTask,
    name: string,
    heard: Heard,
    signal: AbortSignal,
    onProgress: ExecutorOptions['onProgress'],
  ): Promise<never> {
    const { engine, log } = this.#options;
    const { lostAfterMs, silentAfterMs, engineAwayMs, muteAfterMs } = { ...defaultPatience, ...this.#options.patience };
    const { memoryBytes, timeoutMs } = { ...defaultLimits, ...limits };
    let awaySinceMs: number | null = null;
    let unseenSinceMs: number | null = null;
    let runningSinceMs: number | null = null;
    let isMute = false;
    for (;;) {
      await abortableSleep(engine.pollMs, signal);
      let state: EngineState;
      try {
        state = await unlessAborted(engine.state(name), signal);
        awaySinceMs = null;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof EngineError)) throw error;
        awaySinceMs ??= performance.now();
        if (performance.now() - awaySinceMs > engineAwayMs) engineAway(engine, error);
        continue;
      }
      const nowMs = performance.now();
      if (state === 'out-of-memory') throw ofLimit('job_memory_exceeded', memoryBytes);
      if (state === 'waiting' && !heard.hasBegun) onProgress(0, `waiting for a place in ${engine.title}`);
      unseenSinceMs = state === 'waiting' || state === 'running' ? null : (unseenSinceMs ?? nowMs);
      if (state === 'running') {
        if (runningSinceMs === null) heard.atMs = Math.max(heard.atMs, nowMs);
        runningSinceMs ??= nowMs;
        // An executor keeps the time itself, unless it is not what it should be.
        if (nowMs - runningSinceMs > timeoutMs + timeBesideStepMs) throw ofLimit('job_timeout', timeoutMs);
      }
      if (!heard.hasBegun && runningSinceMs !== null && nowMs - runningSinceMs > muteAfterMs) {
        onProgress(0, `the job runs in ${engine.title} and has not called the app yet`);
        if (!isMute) log.warn({ job: name }, 'a job runs and has not called yet: can it reach JOBS_URL?');
        isMute = true;
      }
      const isSilent = runningSinceMs !== null && nowMs - heard.atMs > silentAfterMs;
      if (!isSilent && (unseenSinceMs === null || nowMs - unseenSinceMs < lostAfterMs)) continue;
      const printed = await unlessAborted(
        engine.logs(name).catch(() => ''),
        signal,
      );
      log.warn({ job: name, state, printed: printed.slice(-2_000) }, 'the job of a run ended without an answer');
      throw executorLost(`${engine.title} lost the job of this run`, heard.hasBegun);
    }
  }

  #forgetAfter(submitted: Promise<void>, name: string): void {
    const ending = submitted
      .catch(() => {})
      .then(() => this.#forget(name, this.#options.addresses[0]))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /** Ends the job, which may be over already, and removes its record, unless another process has taken it over. */
  async #forget(name: string, ownerUrl: string): Promise<void> {
    const { engine, records, log } = this.#options;
    try {
      const record = await records.named(name);
      if (record && record.ownerUrl !== ownerUrl) return;
      await engine.cancel(name);
      await records.remove(name);
    } catch (error) {
      // The sweep tries again when the run has ended.
      log.warn({ err: error, job: name }, 'could not end a job at its engine');
    }
  }

  async #endJobsOfEndedRuns(): Promise<void> {
    try {
      for (const { name, ownerUrl } of await this.#options.records.ofEndedRuns()) await this.#forget(name, ownerUrl);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not look for jobs of ended runs');
    }
  }
}

/** Resolves with the promise. Rejects with the signal's reason as soon as that is aborted. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** A place outside this process that ended without an answer. The run gets another attempt. `hasBegun`: the loss uses up no patience. */
const executorLost = (message: string, hasBegun: boolean) =>
  new ChildJobError('executor_lost', message, { kind: 'transient', data: { hasBegun } });

function engineAway(engine: StepEngine, error: unknown): never {
  if (!(error instanceof EngineError)) throw error;
  throw new ChildJobError('executor_away', `${engine.title} does not take or show the job`, {
    kind: 'transient',
    data: { reason: error.message },
  });
}

/** Only limits that have a value. */
function definedLimits(limits: ChildLimits): SealedJob['limits'] {
  return Object.fromEntries(
    Object.entries(limits).filter(([, limit]) => limit !== undefined && Number.isFinite(limit)),
  );
}

/** The error of a limit, with the owner's own words and numbers. */
const ofLimit = (code: 'job_memory_exceeded' | 'job_timeout', limit: number): ChildJobError =>
  code === 'job_timeout'
    ? limitError(code, 'ran longer than', limit, 'ms')
    : limitError(code, 'used more memory than', limit, 'bytes');

/** Reads the finding of an executor's host. It decides by its code alone, and says nothing of this machine. */
function findingOf(code: HostCode, said: string, { limits }: ExecutorTask): ChildJobError {
  const { memoryBytes, timeoutMs, diskBytes, processes } = { ...defaultLimits, ...limits };
  const elsewhere = (message: string) =>
    new ChildJobError('executor_failed', message, { kind: 'transient', data: { said } });
  switch (code) {
    case 'job_memory_exceeded':
    case 'job_timeout':
      return ofLimit(code, code === 'job_timeout' ? timeoutMs : memoryBytes);
    case 'job_disk_exceeded':
      return limitError(code, 'wrote more to disk than', diskBytes, 'bytes');
    case 'job_processes_exceeded':
      return limitError(code, 'started more processes than', processes, 'processes');
    case 'job_crashed':
      return new ChildJobError(code, 'the process ended before it had a result', { data: { said } });
    case 'job_not_started':
      return elsewhere('the executor could not start a process');
    case 'disk_full':
      return elsewhere('the disk of the executor is full');
    case 'executor_stopped':
      return new ChildJobError(code, 'the executor had to stop', { kind: 'transient', data: { hasBegun: true } });
    case 'executor_differs':
      return new ChildJobError(code, 'the executor has other code than the app', { kind: 'transient', data: { said } });
    case 'executor_failed':
      return elsewhere('the executor failed');
  }
}

/** Reads an executor's result as one reads a child's. */
async function read(result: JobResult, task: ExecutorTask): Promise<ExecutedStep> {
  if (result.type === 'failed') {
    if (result.found) throw findingOf(result.found.code, result.found.message, task);
    if (result.reported) throw new ReportedJobError(result.reported);
    throw executorLost('the executor said only that it failed', true);
  }
  const own = await task.inputDigests;
  if (own.length !== result.inputDigests.length || own.some((digest, i) => digest !== result.inputDigests[i]))
    throw new ChildJobError('executor_answer_damaged', 'an input did not reach its executor as it was sent', {
      kind: 'transient',
    });
  const picture = result.result && Uint8Array.from(Buffer.from(result.result.picture, 'base64'));
  return {
    answer: { descriptions: result.descriptions, result: result.result && { ...result.result, picture } },
    gdalVersion: result.gdalVersion,
    usage: result.usage,
    sent: new Map(result.outputs.map(({ fileName, sha256 }) => [fileName, sha256])),
  };
}
