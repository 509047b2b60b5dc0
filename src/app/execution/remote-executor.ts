import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
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
import type { JobDesk } from './job-desk.ts';
import type { JobRecord, JobRecords } from './job-records.ts';
import { attemptName, hashOf, transientCodes, type JobResult, type SealedJob } from './sealed-job.ts';
import { EngineError, type EngineJob, type EngineState, type StepEngine } from './step-engine.ts';

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

/** Memory of a job beside that of its step: the process that fetches, watches and sends. */
const memoryBesideStep = 512 * 1024 ** 2;
/** Time of a job beside that of its step: for start, inputs and outputs. */
const timeBesideStepMs = 30 * 60_000;
/** Times, in milliseconds. */
const defaultPatience = {
  /** A job that its engine does not show yet, or no more, counts as lost after this time. The answer may be on its way. */
  lostAfterMs: 30_000,
  /** A job that its engine shows as running, and that has not been heard of for this time, counts as lost. */
  silentAfterMs: 20 * 60_000,
  /** An engine that does not answer is asked again for this time. */
  engineAwayMs: 10 * 60_000,
};
const sweepEveryMs = 60_000;

/** Gives steps to an engine outside the app. Bytes are passed by this process, which owns the run, and no folder is shared. */
export class RemoteExecutor implements StepExecutor {
  readonly #options: RemoteExecutorOptions;
  readonly #sweeping: NodeJS.Timeout;

  constructor(options: RemoteExecutorOptions) {
    this.#options = options;
    this.#sweeping = setInterval(() => void this.#endJobsOfEndedRuns(), sweepEveryMs);
    this.#sweeping.unref();
  }

  async run(task: ExecutorTask, options: ExecutorOptions): Promise<ExecutedStep> {
    const { signal, onProgress, onPrinted } = options;
    signal.throwIfAborted();
    const outputFolder = join(task.workFolder, 'step');
    await removeFolder(outputFolder);
    await mkdir(outputFolder, { recursive: true });
    const { record, token } = await this.#recordOf(task);
    const { promise: answered, resolve: onResult } = Promise.withResolvers<JobResult>();
    const heard = { atMs: performance.now(), isWaiting: true };
    this.#options.desk.open({
      ...record,
      sealed: this.#seal(task, record.name),
      inputPaths: task.sources.flatMap(({ paths }) => paths),
      outputNames: outputsOf(task.step).map(([, { fileName }]) => fileName),
      outputFolder,
      outputBytes: task.limits?.diskBytes ?? defaultLimits.diskBytes,
      onProgress: ({ fraction, note, printed }) => {
        Object.assign(heard, { atMs: performance.now(), isWaiting: false });
        onProgress(fraction, note);
        for (const line of printed) onPrinted?.(line);
      },
      onResult,
    });
    const over = new AbortController();
    const watching = AbortSignal.any([signal, over.signal]);
    try {
      if (token !== null) await this.#submit(task, record.name, token);
      const result = await Promise.race([answered, this.#watch(task, record.name, heard, watching, onProgress)]);
      return await read(result, task);
    } finally {
      over.abort(new Error('the job is over'));
      this.#options.desk.close(record.name);
      // A later owner of the run finds the job by its record.
      if (!(signal.reason instanceof RunReleased)) await this.#forget(record.name);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    await this.#options.engine.close?.();
  }

  /** The job that an earlier owner of the run has begun, if its engine still has it; otherwise a new one, with its token. */
  async #recordOf({ run, tile }: ExecutorTask): Promise<{ record: JobRecord; token: string | null }> {
    const { engine, records, addresses } = this.#options;
    const ownerUrl = addresses[0];
    const attempt = run ?? { id: randomBytes(16).toString('base64url'), claim: 1 };
    // 0 is the run as a whole.
    const part = tile?.type === 'part' ? tile.number + 1 : 0;
    const earlier = run && (await records.ofRun(run.id, part));
    if (earlier) {
      const state = await engine.state(earlier.name).catch((error: unknown) => engineAway(engine, error));
      if (state === 'waiting' || state === 'running') {
        const record = { ...earlier, ownerUrl };
        await records.put(record);
        this.#options.log.info({ job: earlier.name, state }, 'attached to the job of an earlier attempt');
        return { record, token: null };
      }
      await this.#forget(earlier.name);
    }
    const token = randomBytes(32).toString('base64url');
    const name = attemptName(attempt, part);
    const record = { runId: attempt.id, part, name, tokenHash: hashOf(token), sessionHash: null, ownerUrl };
    await records.put(record);
    return { record, token };
  }

  #seal({ parameters, provenance, sources, tile, limits = {} }: ExecutorTask, attempt: string): SealedJob {
    const { id, version, code } = provenance.known.step;
    return {
      format: 1,
      attempt,
      addresses: this.#options.addresses.slice(1),
      step: { id, version, code },
      software: { ...provenance.known.software },
      parameters: { ...parameters },
      provenance: { known: provenance.known, inputs: provenance.inputs },
      inputs: sources.map(({ name, kind, synthetic, paths, ofItems }, i) => ({
        ...{ name, kind, synthetic: synthetic && { ...synthetic } },
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
    const job: EngineJob = {
      name,
      environment: { STEP_JOB_URL: `${addresses[0]}/jobs/${name}`, STEP_JOB_TOKEN: token },
      memoryBytes: memoryBytes + memoryBesideStep,
      cores: step.requires?.cores ?? 1,
      timeoutMs: timeoutMs + timeBesideStepMs,
      diskBytes,
      label: step.requires?.label ?? null,
    };
    await engine.submit(job).catch((error: unknown) => engineAway(engine, error));
  }

  /** Watches the job at its engine. Rejects when it is lost, out of memory, or the signal is aborted. */
  async #watch(
    { limits }: ExecutorTask,
    name: string,
    heard: { readonly atMs: number; readonly isWaiting: boolean },
    signal: AbortSignal,
    onProgress: ExecutorOptions['onProgress'],
  ): Promise<never> {
    const { engine, log } = this.#options;
    const { lostAfterMs, silentAfterMs, engineAwayMs } = { ...defaultPatience, ...this.#options.patience };
    let [seenAtMs, answeredAtMs] = [performance.now(), performance.now()];
    for (;;) {
      await abortableSleep(engine.pollMs, signal);
      let state: EngineState;
      try {
        state = await engine.state(name);
        answeredAtMs = performance.now();
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (performance.now() - answeredAtMs > engineAwayMs) engineAway(engine, error);
        continue;
      }
      signal.throwIfAborted();
      if (state === 'out-of-memory') {
        const { memoryBytes } = { ...defaultLimits, ...limits };
        throw limitError('job_memory_exceeded', 'used more memory than', memoryBytes, 'bytes');
      }
      if (state === 'waiting' || state === 'running') seenAtMs = performance.now();
      if (state === 'waiting' && heard.isWaiting) onProgress(0, `waiting for a place in ${engine.title}`);
      const isSilent = state === 'running' && !heard.isWaiting && performance.now() - heard.atMs > silentAfterMs;
      if (!isSilent && performance.now() - seenAtMs < lostAfterMs) continue;
      const printed = await engine.logs(name).catch(() => '');
      log.warn({ job: name, state, printed: printed.slice(-2_000) }, 'the job of a run ended without an answer');
      throw executorLost(`${engine.title} lost the job of this run`);
    }
  }

  /** Ends the job, which may be over already, and removes its record. */
  async #forget(name: string): Promise<void> {
    const { engine, records, log } = this.#options;
    try {
      await engine.cancel(name);
      await records.remove(name);
    } catch (error) {
      // The sweep tries again when the run has ended.
      log.warn({ err: error, job: name }, 'could not end a job at its engine');
    }
  }

  async #endJobsOfEndedRuns(): Promise<void> {
    try {
      for (const name of await this.#options.records.ofEndedRuns()) await this.#forget(name);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not look for jobs of ended runs');
    }
  }
}

/** A place outside this process that ended without an answer. The run gets another attempt. */
const executorLost = (message: string) => new ChildJobError('executor_lost', message, { kind: 'transient' });

function engineAway(engine: StepEngine, error: unknown): never {
  if (!(error instanceof EngineError)) throw error;
  throw new ChildJobError('executor_away', `${engine.title}: ${error.message}`, { kind: 'transient' });
}

/** Only limits that have a value. */
function definedLimits(limits: ChildLimits): SealedJob['limits'] {
  return Object.fromEntries(
    Object.entries(limits).filter(([, limit]) => limit !== undefined && Number.isFinite(limit)),
  );
}

/** Reads an executor's result as one reads a child's. */
async function read(result: JobResult, { inputDigests }: ExecutorTask): Promise<ExecutedStep> {
  if (result.type === 'failed') {
    if (result.found) {
      const { code, message, limit } = result.found;
      throw new ChildJobError(code, message, {
        kind: transientCodes.has(code) ? 'transient' : 'input',
        ...(limit !== null && { data: { limit } }),
      });
    }
    if (result.reported) throw new ReportedJobError(result.reported);
    throw executorLost('the executor said only that it failed');
  }
  const own = await inputDigests;
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
