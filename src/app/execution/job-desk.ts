import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { json, Router, type Request, type Response } from 'express';
import { parseRequest, RequestError } from '../web/errors.ts';
import type { JobRecord, JobRecords } from './job-records.ts';
import {
  hashOf,
  isAttemptName,
  isSecretOf,
  jobBeginning,
  jobResult,
  progressReport,
  type JobResult,
  type ProgressReport,
  type SealedJob,
} from './sealed-job.ts';

/** A picture and the rest of an answer, in base64 and JSON. */
const resultBytes = '8mb';
const progressBytes = '1mb';

/** A job that this process waits for. */
export interface OpenJob extends Pick<JobRecord, 'tokenHash' | 'sessionHash' | 'ownerUrl'> {
  readonly sealed: SealedJob;
  /** Absolute paths of the input files, in the order of the sealed job. */
  readonly inputPaths: readonly string[];
  /** Names of the files that may come back. */
  readonly outputNames: readonly string[];
  /** Folder that takes them. */
  readonly outputFolder: string;
  readonly outputBytes: number;
  readonly onProgress: (report: ProgressReport) => void;
  /** Called once. */
  readonly onResult: (result: JobResult) => void;
}

/** Serves jobs to the processes that do them: inputs out, progress and outputs in. Each call carries the job's token or session. */
export class JobDesk {
  readonly routes: Router;
  readonly #ownUrl: string;
  readonly #records: JobRecords;
  readonly #jobs = new Map<string, OpenJob>();

  /** `ownUrl`: address of this process, as records hold it. */
  constructor(records: JobRecords, ownUrl: string) {
    this.#records = records;
    this.#ownUrl = ownUrl;
    this.routes = this.#makeRoutes();
  }

  open(job: OpenJob): void {
    this.#jobs.set(job.sealed.attempt, job);
  }

  close(name: string): void {
    this.#jobs.delete(name);
  }

  #makeRoutes(): Router {
    const routes = Router();
    routes.post('/jobs/:name/begin', json({ limit: '1kb' }), async (req, res) => {
      const job = await this.#find(req, res, 'token');
      if (!job) return;
      const sessionHash = hashOf(parseRequest(jobBeginning, req.body).session);
      const { attempt } = job.sealed;
      if (job.sessionHash !== sessionHash && !(await this.#records.begin(attempt, sessionHash)))
        throw new RequestError(409, 'job_begun', 'another process has begun this job');
      this.#jobs.set(attempt, { ...job, sessionHash });
      res.json(job.sealed);
    });
    routes.get('/jobs/:name/inputs/:number', async (req, res) => {
      const job = await this.#find(req, res, 'session');
      if (!job) return;
      const path = /^\d{1,6}$/.test(req.params.number) ? job.inputPaths[Number(req.params.number)] : undefined;
      if (path === undefined) throw new RequestError(404, 'not_found', 'the job has no such input');
      await new Promise<void>((resolve, reject) =>
        res.sendFile(path, { dotfiles: 'allow', cacheControl: false, lastModified: false, etag: false }, (error) =>
          // An executor that has ended needs no answer.
          error && !req.destroyed ? reject(error) : resolve(),
        ),
      );
    });
    routes.post('/jobs/:name/progress', json({ limit: progressBytes }), async (req, res) => {
      const job = await this.#find(req, res, 'session');
      if (!job) return;
      job.onProgress(parseRequest(progressReport, req.body));
      res.sendStatus(204);
    });
    routes.put('/jobs/:name/outputs/:file', async (req, res) => {
      const job = await this.#find(req, res, 'session');
      if (!job) return;
      await takeOutput(req, job);
      res.sendStatus(204);
    });
    routes.post('/jobs/:name/result', json({ limit: resultBytes }), async (req, res) => {
      const job = await this.#find(req, res, 'session');
      if (!job) return;
      const result = parseRequest(jobResult, req.body);
      // A process that took over the run has none of the files that the earlier one got.
      const missing = result.type === 'done' ? await missingOutputs(result.outputs, job) : [];
      if (missing.length > 0) return void res.status(409).json({ missing });
      this.close(job.sealed.attempt);
      job.onResult(result);
      res.sendStatus(204);
    });
    return routes;
  }

  /**
   * Finds the job of a request. Null if another process has its run: the answer is then a redirect to that process. Throws
   * `RequestError`: 410 for a job that nobody waits for any more, 503 for one whose owner is about to start.
   */
  async #find(req: Request, res: Response, by: 'token' | 'session'): Promise<OpenJob | null> {
    const name = String(req.params['name']);
    const job = this.#jobs.get(name);
    const record = job ?? (isAttemptName(name) ? await this.#records.named(name) : null);
    if (!record) throw new RequestError(410, 'job_over', 'nobody waits for this job any more');
    const [, secret = ''] = /^Bearer (\S{1,200})$/.exec(req.headers.authorization ?? '') ?? [];
    if (!isSecretOf(by === 'token' ? record.tokenHash : record.sessionHash, secret))
      throw new RequestError(401, 'job_secret_required', 'the call does not carry the secret of this job');
    if (job) return job;
    if (record.ownerUrl === this.#ownUrl)
      throw new RequestError(503, 'job_owner_away', 'the owner of this job is about to start');
    res.redirect(307, `${record.ownerUrl}${req.originalUrl}`);
    return null;
  }
}

/** Writes the body of a request to the file of an output. */
async function takeOutput(req: Request, job: OpenJob): Promise<void> {
  const name = job.outputNames.find((known) => known === req.params['file']);
  if (name === undefined) throw new RequestError(404, 'not_found', 'the step declares no such output');
  const sizeBytes = Number(req.headers['content-length'] ?? NaN);
  if (!Number.isSafeInteger(sizeBytes))
    throw new RequestError(411, 'length_required', 'an output needs a Content-Length');
  const others = job.outputNames.filter((known) => known !== name);
  const held = await Promise.all(others.map((other) => sizeOf(join(job.outputFolder, other))));
  if (held.reduce((sum, size) => sum + size, sizeBytes) > job.outputBytes)
    throw new RequestError(413, 'outputs_too_large', `the outputs may have ${job.outputBytes} bytes together`);
  await mkdir(job.outputFolder, { recursive: true });
  const aside = join(job.outputFolder, `.${randomUUID()}.part`);
  try {
    await pipeline(req, atMost(sizeBytes), createWriteStream(aside, { flags: 'wx', mode: 0o600 }));
    if ((await sizeOf(aside)) !== sizeBytes)
      throw new RequestError(400, 'bad_request', 'the output ended before its Content-Length');
    await rename(aside, join(job.outputFolder, name));
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
