import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { json, Router, type Request, type RequestHandler, type Response } from 'express';
import { ChildJobError } from '../../child/index.ts';
import { codeOf } from '../../files/index.ts';
import { parseRequest, RequestError } from '../web/errors.ts';
import type { JobRecord, JobRecords } from './job-records.ts';
import {
  hashOf,
  isJobName,
  isSecretOf,
  jobBeginning,
  jobResult,
  progressReport,
  type JobResult,
  type ProgressReport,
  type SealedJob,
} from './sealed-job.ts';

/** Bodies are parsed only for those who have the secret of the job. A picture of 2 MiB in base64, and the rest of a result. */
const bodies = { begin: '1kb', progress: '256kb', result: '4mb' };

/** A job that this process waits for. */
export interface OpenJob extends Pick<JobRecord, 'name' | 'tokenHash' | 'ownerUrl'> {
  /** Null until an executor has begun the job. */
  sessionHash: string | null;
  readonly sealed: SealedJob;
  /** Absolute paths of the input files, in the order of the sealed job. */
  readonly inputPaths: readonly string[];
  /** Names of the files that may come back. */
  readonly outputNames: readonly string[];
  /** Folder that takes them. It exists. */
  readonly outputFolder: string;
  readonly outputBytes: number;
  readonly onProgress: (report: ProgressReport) => void;
  readonly onResult: (result: JobResult) => void;
  /** Called if this process cannot take an output. */
  readonly onFailed: (error: ChildJobError) => void;
}

type JobRequest = (job: OpenJob, req: Request, res: Response) => Promise<void> | void;

/** Serves jobs to the processes that do them: inputs out, progress and outputs in. Each call carries the job's token or session. */
export class JobDesk {
  readonly routes: Router;
  readonly #ownUrl: string;
  readonly #records: JobRecords;
  readonly #jobs = new Map<string, OpenJob>();
  /** Jobs with an output on its way. */
  readonly #sending = new Set<string>();

  /** `ownUrl`: address of this process, as records hold it. */
  constructor(records: JobRecords, ownUrl: string) {
    this.#records = records;
    this.#ownUrl = ownUrl;
    this.routes = this.#makeRoutes();
  }

  open(job: OpenJob): void {
    this.#jobs.set(job.name, job);
  }

  close(job: OpenJob): void {
    if (this.#isOpen(job)) this.#jobs.delete(job.name);
  }

  #isOpen(job: OpenJob): boolean {
    return this.#jobs.get(job.name) === job;
  }

  #makeRoutes(): Router {
    const routes = Router({ caseSensitive: true });
    routes.post(
      '/jobs/:name/begin',
      ...this.#authorized('token', 'begin', (job, req, res) => this.#begin(job, req, res)),
    );
    routes.get('/jobs/:name/inputs/:number', ...this.#authorized('session', null, sendInput));
    routes.post(
      '/jobs/:name/progress',
      ...this.#authorized('session', 'progress', (job, req, res) => {
        job.onProgress(parseRequest(progressReport, req.body));
        res.sendStatus(204);
      }),
    );
    routes.put('/jobs/:name/outputs/:file', ...this.#authorized('session', null, (job, req, res) => this.#takeOutput(job, req, res))); // oxfmt-ignore
    routes.post(
      '/jobs/:name/result',
      ...this.#authorized('session', 'result', (job, req, res) => this.#end(job, req, res)),
    );
    return routes;
  }

  /** The handlers of one call: the secret first, then the body. */
  #authorized(by: 'token' | 'session', body: keyof typeof bodies | null, handle: JobRequest): RequestHandler[] {
    return [
      async (req, res, next) => {
        const job = await this.#find(req, res, by);
        if (!job) return;
        res.locals['job'] = job;
        next();
      },
      ...(body === null ? [] : [json({ limit: bodies[body], inflate: false })]),
      async (req, res) => {
        const job = res.locals['job'] as OpenJob; // set above
        if (!this.#isOpen(job)) throw jobOver();
        await handle(job, req, res);
      },
    ];
  }

  /**
   * Finds the job of a request. Null if another process has its run: the answer is then a redirect to that process. Throws
   * `RequestError`: 410 for a job that nobody waits for any more, 425 for one whose owner is about to start.
   */
  async #find(req: Request, res: Response, by: 'token' | 'session'): Promise<OpenJob | null> {
    const name = String(req.params['name']);
    const [, secret] = /^Bearer (\S{1,200})$/.exec(req.headers.authorization ?? '') ?? [];
    if (secret === undefined) throw secretRequired();
    const job = this.#jobs.get(name);
    const record = job ?? (isJobName(name) ? await this.#records.named(name) : null);
    if (!record) throw jobOver();
    if (!isSecretOf(by === 'token' ? record.tokenHash : record.sessionHash, secret)) throw secretRequired();
    if (job) return job;
    if (!('runId' in record) || !(await this.#records.hasRun(record))) throw jobOver();
    // 425 is no error of this process: the executor repeats the call.
    if (record.ownerUrl === this.#ownUrl)
      throw new RequestError(425, 'job_owner_away', 'the owner of this job is about to start');
    res.redirect(307, `${record.ownerUrl}${req.originalUrl}`);
    return null;
  }

  async #begin(job: OpenJob, req: Request, res: Response): Promise<void> {
    const sessionHash = hashOf(parseRequest(jobBeginning, req.body).session);
    if (!(await this.#records.begin(job.name, sessionHash)))
      throw new RequestError(409, 'job_begun', 'another process has begun this job');
    if (!this.#isOpen(job)) throw jobOver();
    job.sessionHash = sessionHash;
    res.json(job.sealed);
  }

  /** Takes one output at a time, so that the outputs of a job never hold more than they may. */
  async #takeOutput(job: OpenJob, req: Request, res: Response): Promise<void> {
    if (this.#sending.has(job.name))
      throw new RequestError(425, 'job_output_under_way', 'an output of this job is on its way');
    this.#sending.add(job.name);
    try {
      await takeOutput(job, req);
      res.sendStatus(204);
    } catch (error) {
      if (!['ENOSPC', 'EDQUOT'].includes(codeOf(error) ?? '')) throw error;
      job.onFailed(new ChildJobError('disk_full', 'the disk that takes the outputs is full', { kind: 'transient' }));
      throw jobOver();
    } finally {
      this.#sending.delete(job.name);
    }
  }

  async #end(job: OpenJob, req: Request, res: Response): Promise<void> {
    const result = parseRequest(jobResult, req.body);
    // A process that took over the run has none of the files that the earlier one got.
    const missing = result.type === 'done' ? await missingOutputs(result.outputs, job) : [];
    if (missing.length > 0) return void res.status(409).json({ missing });
    this.close(job);
    job.onResult(result);
    res.sendStatus(204);
  }
}

const jobOver = () => new RequestError(410, 'job_over', 'nobody waits for this job any more');
const secretRequired = () =>
  new RequestError(401, 'job_secret_required', 'the call does not carry the secret of this job');

const sendInput: JobRequest = async (job, req, res) => {
  const number = String(req.params['number']);
  const path = /^\d{1,6}$/.test(number) ? job.inputPaths[Number(number)] : undefined;
  if (path === undefined) throw new RequestError(404, 'not_found', 'the job has no such input');
  await new Promise<void>((resolve, reject) =>
    res.sendFile(path, { dotfiles: 'allow', cacheControl: false, lastModified: false, etag: false }, (error) =>
      // An executor that has ended needs no answer.
      error && !req.destroyed ? reject(error) : resolve(),
    ),
  );
};

/** Writes the body of a request to the file of an output. */
async function takeOutput({ outputNames, outputFolder, outputBytes }: OpenJob, req: Request): Promise<void> {
  const name = outputNames.find((known) => known === req.params['file']);
  if (name === undefined) throw new RequestError(404, 'not_found', 'the step declares no such output');
  const sizeBytes = Number(req.headers['content-length'] ?? NaN);
  if (!Number.isSafeInteger(sizeBytes))
    throw new RequestError(411, 'length_required', 'an output needs a Content-Length');
  const others = outputNames.filter((known) => known !== name);
  const held = await Promise.all(others.map((other) => sizeOf(join(outputFolder, other))));
  if (held.reduce((sum, size) => sum + size, sizeBytes) > outputBytes)
    throw new RequestError(413, 'outputs_too_large', `the outputs may have ${outputBytes} bytes together`);
  const aside = join(outputFolder, `.${randomUUID()}.part`);
  try {
    await rm(join(outputFolder, name), { force: true });
    await pipeline(req, atMost(sizeBytes), createWriteStream(aside, { flags: 'wx', mode: 0o600 }));
    if ((await sizeOf(aside)) !== sizeBytes)
      throw new RequestError(400, 'bad_request', 'the output ended before its Content-Length');
    await rename(aside, join(outputFolder, name));
  } finally {
    await rm(aside, { force: true });
  }
}

/** Ends a stream that is longer than it said. */
function atMost(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      if (left < 0) done(new RequestError(400, 'bad_request', 'the output is longer than its Content-Length'));
      else done(null, chunk);
    },
  });
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => null))?.size ?? 0;

async function missingOutputs(
  outputs: readonly { readonly fileName: string; readonly sizeBytes: number }[],
  { outputFolder, outputNames }: OpenJob,
): Promise<string[]> {
  const missing: string[] = [];
  for (const { fileName, sizeBytes } of outputs)
    if (outputNames.includes(fileName) && (await sizeOf(join(outputFolder, fileName))) !== sizeBytes)
      missing.push(fileName);
  return missing;
}
