import { randomBytes } from 'node:crypto';
import { createWriteStream, openAsBlob } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { ChildJobError, FileDigests, ReportedJobError, type ChildLimits } from '../../child/index.ts';
import { codeOf, messageOf } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { CodeDigests } from '../processing/code-digest.ts';
import type { Source } from '../processing/fetch-sources.ts';
import type { ExecutedStep, StepExecutor } from '../processing/step-executor.ts';
import { moveOutputs } from '../processing/take-outputs.ts';
import {
  asHostCode,
  sealedJob,
  type HostCode,
  type JobResult,
  type ProgressReport,
  type SealedJob,
} from './sealed-job.ts';

export interface ExecStepOptions {
  /** Address of the job at its owner. */
  readonly url: string;
  /** Its one-time token. */
  readonly token: string;
  readonly steps: readonly AnyStep[];
  readonly code: CodeDigests;
  /** Does the work: a confined child process of this machine. */
  readonly executor: StepExecutor;
  /** An empty folder for inputs and outputs. */
  readonly workFolder: string;
  /** Aborted if this machine wants its place back. */
  readonly signal: AbortSignal;
  /** Longest time for which an owner that does not answer is called again. Default: 15 minutes. */
  readonly patienceMs?: number;
  readonly log: (line: string) => void;
}

const defaultPatienceMs = 15 * 60_000;
const pauseMs = { first: 500, most: 15_000 };
/** Time for the last calls of an executor that has to stop. */
const stoppedPatienceMs = 5_000;
const reportEveryMs = 1_000;
const mostLines = 200;
/** The owner takes no larger picture. */
const mostPictureBytes = 2 * 1024 ** 2;

/** Nobody waits for this job any more, or another process has begun it. */
export class JobOverError extends Error {}

/** The owner refuses a call, and would refuse a repeat. */
class RefusedError extends Error {}

/**
 * Does one sealed job: fetches the inputs from the owner of the run, runs the step as a worker would, and sends the outputs back.
 * Resolves when the owner has the result, which may be a failure of the step. Rejects with `JobOverError`, or if the owner does not answer.
 */
export async function execStep(options: ExecStepOptions): Promise<void> {
  const calls = new OwnerCalls(options);
  const begun = sealedJob.safeParse(await calls.begin(options.log));
  if (!begun.success) {
    // The owner has another release, whose jobs look different.
    await calls.answer(failedBy('executor_differs', 'the executor cannot read the job of this release of the app'), '');
    return;
  }
  const job = begun.data;
  calls.know(job.addresses);
  options.log(`began ${job.name}: ${job.step.id} ${job.step.version}`);
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const reports = new Reports(calls, (reason) => over.abort(reason));
  try {
    const result = await workOn(job, calls, reports, options, signal).catch((error: unknown) => {
      if (over.signal.aborted) throw over.signal.reason;
      return failed(error, options.signal);
    });
    await reports.end();
    await calls.answer(result, join(options.workFolder, 'out')).catch(async (error: unknown) => {
      if (!(error instanceof RefusedError)) throw error;
      // The owner takes the outputs or the result under no circumstances, so it gets the reason.
      await calls.answer(failedBy('executor_failed', error.message), '');
    });
    options.log(result.type === 'done' ? 'delivered' : `failed: ${result.found?.code ?? result.reported?.code}`);
  } finally {
    await reports.end();
  }
}

async function workOn(
  job: SealedJob,
  calls: OwnerCalls,
  reports: Reports,
  { steps, code, executor, workFolder }: ExecStepOptions,
  signal: AbortSignal,
): Promise<JobResult> {
  const step = await sameStep(job, steps, code);
  const sources = await fetchInputs(job, calls, join(workFolder, 'input'), signal);
  const digests = new FileDigests();
  try {
    const inputDigests = digests
      .of(sources.flatMap(({ paths }) => paths))
      .then((all) => all.map(({ sha256 }) => sha256));
    inputDigests.catch(() => {});
    const executed = await executor.run(
      {
        ...{ run: null, step, sources, inputDigests, workFolder },
        parameters: job.parameters,
        provenance: job.provenance,
        ...(job.tile && { tile: job.tile }),
        limits: job.limits as ChildLimits,
      },
      {
        signal,
        onProgress: (fraction, note) => reports.progress(fraction, note),
        onPrinted: (line) => reports.printed(line),
      },
    );
    const outputs = await measureOutputs(step, workFolder, digests);
    return done(executed, await inputDigests, outputs);
  } finally {
    await digests.close();
  }
}

/** The step of a job. Throws `ChildJobError` if this process has other code than the owner of the run: its result would not be the one that was approved. */
async function sameStep(
  { step: wanted, software }: SealedJob,
  steps: readonly AnyStep[],
  code: CodeDigests,
): Promise<AnyStep> {
  const step = steps.find(({ id }) => id === wanted.id);
  const own = step && { version: step.version, code: await code.of(step), software: await code.software() };
  const isSame =
    own?.version === wanted.version &&
    own.code === wanted.code &&
    Object.entries(own.software).every(([name, version]) => software[name] === version);
  if (step && isSame) return step;
  throw new ChildJobError(
    'executor_differs',
    `the executor has another ${wanted.id} than the app: start exec-step from the image or the checkout of the app itself`,
    { kind: 'transient' },
  );
}

async function fetchInputs(
  { inputs }: SealedJob,
  calls: OwnerCalls,
  folder: string,
  signal: AbortSignal,
): Promise<Source[]> {
  const sources: Source[] = [];
  let number = 0;
  for (const { files, ofItems, ...input } of inputs) {
    const paths: string[] = [];
    for (const { fileName, sizeBytes } of files) {
      // Bands may have their names from the name of their file, so it stays as it is.
      const place = join(folder, String(number));
      await mkdir(place, { recursive: true });
      const path = join(place, fileName);
      await calls.fetchInput(number++, path, sizeBytes, signal);
      paths.push(path);
    }
    sources.push({ ...input, paths, ...(ofItems && { ofItems }) });
  }
  return sources;
}

interface MeasuredOutput {
  readonly fileName: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** The child is gone, so that nothing changes the files any more. */
async function measureOutputs(step: AnyStep, workFolder: string, digests: FileDigests): Promise<MeasuredOutput[]> {
  // A link would lead to files of this machine, and is refused.
  const moved = await moveOutputs(step, join(workFolder, 'step'), join(workFolder, 'out'));
  const names = [...moved.keys()];
  const measured = await digests.of([...moved.values()]);
  return measured.map((digest, i) => ({ fileName: names[i] ?? '', ...digest }));
}

function done(
  { answer, gdalVersion, usage }: ExecutedStep,
  inputDigests: readonly string[],
  outputs: MeasuredOutput[],
): JobResult {
  const { result, descriptions }: { result?: unknown; descriptions?: unknown } = answer ?? {};
  const { summary, picture }: { summary?: unknown; picture?: unknown } = result ?? {};
  return {
    type: 'done',
    descriptions: descriptions ?? [],
    result:
      picture instanceof Uint8Array && picture.length <= mostPictureBytes
        ? { summary, picture: Buffer.from(picture).toString('base64') }
        : null,
    gdalVersion,
    usage: { ...usage, peakMemoryBytes: Math.round(usage.peakMemoryBytes) },
    inputDigests: [...inputDigests],
    outputs,
  };
}

const failedBy = (code: HostCode, message: string): JobResult => ({
  ...{ type: 'failed', reported: null },
  found: { code, message: message.slice(0, 2_000) },
});

function failed(error: unknown, stopped: AbortSignal): JobResult {
  if (stopped.aborted) return failedBy('executor_stopped', 'the executor had to stop, and the app tries again');
  if (error instanceof ChildJobError) return failedBy(asHostCode(error.code), error.message);
  if (error instanceof ReportedJobError) {
    const { claimedKind: kind, code, message, childStack: stack } = error;
    return { type: 'failed', found: null, reported: { kind, code, message, stack } };
  }
  if (error instanceof KitError && error.status < 500)
    return {
      type: 'failed',
      found: null,
      reported: { kind: 'input', code: error.code, message: error.message, stack: null },
    };
  return failedBy('executor_failed', messageOf(error));
}

/** Sends progress at most once a second. The reports also say that the job lives. */
class Reports {
  #calls: OwnerCalls;
  #timer: NodeJS.Timeout;
  #now: { fraction: number; note: string | null } = { fraction: 0, note: null };
  #printed: string[] = [];
  #sending: Promise<void> | null = null;

  constructor(calls: OwnerCalls, onOver: (reason: unknown) => void) {
    this.#calls = calls;
    this.#timer = setInterval(() => {
      this.#sending ??= this.#send()
        .catch((error: unknown) => {
          // Progress that is lost does no harm. A job that is over ends the work.
          if (error instanceof JobOverError) onOver(error);
          else this.#calls.turn();
        })
        .finally(() => (this.#sending = null));
    }, reportEveryMs);
  }

  progress(fraction: number, note: string | null): void {
    this.#now = { fraction, note: note === null ? null : note.slice(0, 500) };
  }

  printed(line: string): void {
    if (this.#printed.length < mostLines) this.#printed.push(line.slice(0, 4_000));
  }

  async #send(): Promise<void> {
    const report: ProgressReport = { ...this.#now, printed: this.#printed.splice(0) };
    await this.#calls.report(report);
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending;
    if (this.#printed.length > 0) await this.#send().catch(() => {});
  }
}

/** Calls of the owner of the run. They are repeated while it does not answer. */
class OwnerCalls {
  #path: string;
  /** The owner, and processes that know where it is. */
  #addresses: string[];
  #secret: string;
  #patienceMs: number;
  #stopped: AbortSignal;

  constructor({
    url,
    token,
    signal,
    patienceMs = defaultPatienceMs,
  }: Pick<ExecStepOptions, 'url' | 'token' | 'signal' | 'patienceMs'>) {
    this.#stopped = signal;
    const { origin, pathname } = new URL(url);
    this.#path = pathname;
    this.#addresses = [origin];
    this.#secret = token;
    this.#patienceMs = patienceMs;
  }

  /** Begins the job. Returns it as it came. */
  async begin(log: (line: string) => void): Promise<unknown> {
    const session = randomBytes(32).toString('base64url');
    let isTold = false;
    const response = await this.#repeat(async () => {
      this.#stopped.throwIfAborted();
      return this.#call('/begin', { method: 'POST', ...jsonBody({ session }) }).catch((error: unknown) => {
        if (!isTold)
          log(`the worker does not answer (${reasonOf(error)}); asking again for ${this.#patienceMs / 60_000} min`);
        isTold = true;
        throw error;
      });
    });
    const job: unknown = await response.json();
    this.#secret = session;
    return job;
  }

  /** Adds addresses of processes that know where the owner is. */
  know(addresses: readonly string[]): void {
    this.#addresses.push(...addresses.map((address) => new URL(address).origin));
  }

  /** The next call goes to another process, which may know where the owner is. */
  turn(): void {
    this.#addresses.push(...this.#addresses.splice(0, 1));
  }

  /** Fetches a file, from where an earlier try ended. */
  fetchInput(number: number, path: string, sizeBytes: number, signal: AbortSignal): Promise<void> {
    return this.#repeat(async () => {
      signal.throwIfAborted();
      const from = Math.min((await statOrNull(path))?.size ?? 0, sizeBytes);
      if (from === sizeBytes && from > 0) return;
      const response = await this.#call(`/inputs/${number}`, {
        ...(from > 0 && { headers: { Range: `bytes=${from}-` } }),
        signal,
      });
      if (!response.body) throw new Error('the owner sent no input');
      const flags = response.status === 206 ? 'a' : 'w';
      let left = sizeBytes - (response.status === 206 ? from : 0);
      const bounded = async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          if ((left -= chunk.length) < 0) throw new Error('the input is longer than the owner said');
          yield chunk;
        }
      };
      await pipeline(Readable.fromWeb(response.body), bounded, createWriteStream(path, { flags }), { signal });
      if (left !== 0) throw new Error(`${left} bytes of the input did not come`);
    });
  }

  /** Sent once: the next report follows soon. */
  async report(report: ProgressReport): Promise<void> {
    await this.#call('/progress', { method: 'POST', ...jsonBody(report) });
  }

  /** Sends the outputs and the result. An owner that has lost outputs names them, and gets them again. */
  async answer(result: JobResult, folder: string): Promise<void> {
    let wanted = result.type === 'done' ? result.outputs.map(({ fileName }) => fileName) : [];
    await this.#repeat(async () => {
      for (const name of wanted) {
        const body = await openAsBlob(join(folder, name));
        await this.#call(`/outputs/${encodeURIComponent(name)}`, { method: 'PUT', body });
        wanted = wanted.filter((other) => other !== name);
      }
      const response = await this.#call('/result', { method: 'POST', ...jsonBody(result) }, [409]);
      if (response.status !== 409) return;
      const { missing } = (await response.json()) as { missing?: string[] };
      wanted =
        result.type === 'done'
          ? result.outputs.map(({ fileName }) => fileName).filter((name) => missing?.includes(name))
          : [];
      throw new Error('the owner lacks outputs');
    });
  }

  async #repeat<T>(call: () => Promise<T>): Promise<T> {
    let untilMs = performance.now() + this.#patienceMs;
    let isStopping = false;
    for (let pause = pauseMs.first; ; pause = Math.min(pauseMs.most, pause * 2)) {
      try {
        return await call();
      } catch (error) {
        if (this.#stopped.aborted && !isStopping) {
          isStopping = true;
          untilMs = performance.now() + stoppedPatienceMs;
          pause = pauseMs.first;
        }
        const isFinal = error instanceof JobOverError || error instanceof RefusedError || isAbort(error);
        if (isFinal || performance.now() + pause > untilMs) throw error;
        this.turn();
      }
      // A machine that wants its place back does not wait for the end of a pause.
      await sleep(pause, undefined, isStopping ? {} : { signal: this.#stopped }).catch(() => {});
    }
  }

  /** Sends one request, to another address if the answer is a redirect. Rejects for any answer but a success, and those of `also`. */
  async #call(path: string, init: RequestInit, also: readonly number[] = []): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${this.#secret}` };
    for (let redirects = 0; ; redirects++) {
      const [address = ''] = this.#addresses;
      const response = await fetch(`${address}${this.#path}${path}`, { ...init, headers, redirect: 'manual' });
      if (response.ok || also.includes(response.status)) return response;
      await response.body?.cancel();
      const location = response.headers.get('location');
      if (response.status === 307 && location !== null && redirects < 3) {
        const { origin, protocol } = new URL(location);
        if (protocol !== new URL(address).protocol)
          throw new JobOverError('the owner is at an address of another kind');
        this.#addresses = [origin, ...this.#addresses.filter((known) => known !== origin)];
        continue;
      }
      const { status } = response;
      if ([401, 409, 410].includes(status)) throw new JobOverError(`the owner answered ${status}`);
      if (status >= 400 && status < 500 && ![404, 408, 425, 429].includes(status))
        throw new RefusedError(`the owner answered ${status}`);
      throw new Error(`the owner answered ${response.status}`);
    }
  }
}

const jsonBody = (value: unknown) => ({
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(value),
});

/** The code of the system, or else the message. */
const reasonOf = (error: unknown): string => (error instanceof Error ? codeOf(error.cause) : null) ?? messageOf(error);

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

const statOrNull = (path: string) => stat(path).catch(() => null);
