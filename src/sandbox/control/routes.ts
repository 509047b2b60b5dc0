import { Router, type RequestHandler, type Response } from 'express';
import type * as z from 'zod';
import { CallRouter } from '../call/call-router.ts';
import type { Faults } from '../call/faults.ts';
import type { RateLimit } from '../call/rate-limit.ts';
import { iso, type SandboxClock } from '../clock.ts';
import type { Operation, Operations } from '../external-app/operations.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Users } from '../identity/users.ts';
import type { InferenceJobs } from '../inference/inference-jobs.ts';
import type { Apps } from '../marketplace/apps.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import type { Launches } from '../marketplace/launches.ts';
import { unattributed } from '../referee/call-writer.ts';
import { harOf } from '../referee/har.ts';
import { junitXml } from '../referee/junit.ts';
import type { Trace } from '../referee/trace.ts';
import type { Verdicts } from '../referee/verdicts.ts';
import type { Items } from '../stac/items.ts';
import type { Files } from '../uploads/files.ts';
import type { UploadEngine } from '../uploads/upload-engine.ts';
import type { UploadSessions } from '../uploads/upload-sessions.ts';
import { jsonBody } from '../web/json-body.ts';
import { invalid, parseValues, SandboxError } from '../web/sandbox-error.ts';
import { controlCalls, type ControlAnswer, type ControlCall, type ControlPath } from './calls.ts';

export interface ControlOptions {
  /** Rejects calls of anybody but an administrator. */
  readonly admin: RequestHandler;
  readonly apps: Apps;
  readonly users: Users;
  readonly keys: ApiKeys;
  readonly launches: Launches;
  readonly tokens: IdentityTokens;
  readonly operations: Operations;
  readonly uploadSessions: UploadSessions;
  readonly clock: SandboxClock;
  readonly events: LaunchEvents;
  readonly faults: Faults;
  readonly rateLimit: RateLimit;
  readonly files: Pick<Files, 'find'>;
  readonly uploads: Pick<UploadEngine, 'digests'>;
  readonly items: Pick<Items, 'findByFile'>;
  readonly jobs: Pick<InferenceJobs, 'find'>;
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  readonly publicUrl: () => string;
  /** Runs what is due after time has moved. */
  readonly afterClockMoved: () => Promise<void>;
  readonly reset: () => Promise<void>;
}

/** Operations in one response. Each may hold 64 KiB of parameters. */
const maxOperations = 1_000;
/** The last instant that can be written as ISO 8601 with four digits of year. */
const endOfCalendarMs = Date.UTC(9999, 11, 31);

/** The parts of a request: its path, query and body. */
interface Received<Row extends ControlCall> {
  readonly path: ControlPath<Row>;
  readonly query: Row extends { readonly query: infer Schema extends z.ZodObject } ? z.output<Schema> : undefined;
  readonly body: Row extends { readonly request: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
  /** For an answer that is not JSON. */
  readonly res: Response;
}

/** Answers a control call. `null`: the work has sent the answer itself. */
type Answer = <Row extends ControlCall>(
  row: Row,
  work: (received: Received<Row>) => ControlAnswer<Row> | null | Promise<ControlAnswer<Row> | null>,
) => void;

/** The sandbox's own calls, under `/sandbox`: no part of the platform. */
export function controlRoutes(options: ControlOptions): Router {
  // A body that the call does not have must still be JSON.
  const calls = new CallRouter<ControlCall>(({ method, request }) => [
    options.admin,
    ...(method === 'POST' && request === undefined ? [jsonBody] : []),
  ]);
  const answer: Answer = (row, work) =>
    calls.on({ ...row, path: row.path.slice('/sandbox'.length) as ControlCall['path'] }, async (req, res) => {
      // The parts have the shapes of the schemas of the row.
      const received = {
        path: req.params,
        query: row.query && parseValues(row.query, req.query),
        body: row.request && parseValues(row.request, req.body),
        res,
      } as unknown as Parameters<typeof work>[0];
      const made = await work(received);
      if (made === null) return;
      res.status(row.success ?? 200);
      if (made === undefined) res.end();
      else res.json(made);
    });
  answerMarketplace(answer, options);
  answerLaunches(answer, options);
  answerOperations(answer, options);
  answerConditions(answer, options);
  answerData(answer, options);
  return calls.finish();
}

function answerMarketplace(answer: Answer, { apps, users, keys }: ControlOptions): void {
  answer(controlCalls.listApps, () => ({ apps: apps.list() }));
  answer(controlCalls.registerApp, ({ body }) => apps.register(body));
  answer(controlCalls.listUsers, () => ({ users: users.list() }));
  answer(controlCalls.registerUser, ({ body }) => users.register(body));
  answer(controlCalls.listKeys, () => ({
    keys: keys.list().map(({ id, permissions, appId, createdAtMs }) => ({
      ...{ id, appId, permissions: [...permissions] },
      createdAt: iso(createdAtMs),
    })),
  }));
  answer(controlCalls.createKey, ({ body: { permissions, appId } }) => {
    if (appId !== undefined && !apps.find(appId)) throw new SandboxError('app_not_found');
    return keys.create(permissions, appId);
  });
  answer(controlCalls.revokeKey, ({ path }) => {
    if (!keys.revoke(path.id)) throw new SandboxError('key_not_found');
  });
}

function answerLaunches(answer: Answer, options: ControlOptions): void {
  const { launches, tokens, operations, uploadSessions, trace, verdicts } = options;

  answer(controlCalls.launch, ({ body }) => {
    const { launch, issued, launchUrl } = launches.create(body);
    return { launchId: launch.id, token: issued.token, launchUrl, expiresAt: iso(issued.expiresAtMs) };
  });
  answer(controlCalls.getLaunch, ({ path }) => {
    const launch = launches.get(path.launchId);
    return {
      launchId: launch.id,
      appId: launch.appId,
      userId: launch.userId,
      renewPolicy: launch.renewPolicy,
      createdAt: iso(launch.createdAtMs),
      expiresAt: iso(tokens.expiryOf(launch.id)),
      operations: operations.list(launch.id, maxOperations).map((operation) => viewOperation(launches, operation)),
      uploads: uploadSessions.listByLaunch(launch.id).map((upload) => ({
        uploadId: upload.id,
        key: upload.key,
        operationId: upload.operationId,
        fileName: upload.fileName,
        receivedBytes: upload.appendedBytes,
        parts: uploadSessions.parts(upload.id).map(({ partNumber, size }) => ({ partNumber, size })),
        fileId: upload.fileId,
      })),
    };
  });
  answer(controlCalls.revokeLaunch, ({ path }) => launches.revoke(path.launchId));
  const answerTrace = (launchId: string, { query, res }: Received<typeof controlCalls.getOtherCalls>) => {
    const calls = trace.list(launchId);
    if (query.format === 'json') return { total: trace.count(launchId), calls };
    res.json(harOf(calls, options.publicUrl()));
    return null;
  };
  answer(controlCalls.getOtherCalls, (received) => answerTrace(unattributed, received));
  answer(controlCalls.getTrace, (received) => answerTrace(launches.get(received.path.launchId).id, received));
  answer(controlCalls.getVerdict, async ({ path, query, res }) => {
    const launch = launches.get(path.launchId);
    await verdicts.read([launch.id]);
    const { verdict } = verdicts.of(launch.id);
    if (query.format === 'json') return { launchId: launch.id, appId: launch.appId, ...verdict };
    res.type('application/xml').send(junitXml([{ name: launch.id, verdict }]));
    return null;
  });
}

function answerOperations(answer: Answer, { operations, launches }: ControlOptions): void {
  answer(controlCalls.listOperations, () => ({
    operations: operations.list(null, maxOperations).map((operation) => viewOperation(launches, operation)),
  }));
  for (const [row, status] of [
    [controlCalls.approveOperation, 'APPROVED'],
    [controlCalls.rejectOperation, 'REJECTED'],
  ] as const)
    answer(row, ({ path }) => viewOperation(launches, operations.decide(path.operationId, status, 'a control call')));
}

/** The conditions of later calls: clock, faults, rate limit. */
function answerConditions(answer: Answer, options: ControlOptions): void {
  const { clock, events, launches, faults, rateLimit } = options;
  const rateLimitNow = () => {
    const { requestsPerMinute = null, endpoint = null } = rateLimit.get() ?? {};
    return { requestsPerMinute, endpoint };
  };

  answer(controlCalls.getClock, () => ({ now: iso(clock.now(null)) }));
  answer(controlCalls.moveClock, async ({ body: { advanceMs, launchId = null } }) => {
    if (launchId !== null) launches.get(launchId);
    if (clock.now(launchId) + advanceMs > endOfCalendarMs)
      throw invalid([{ path: 'advanceMs', message: 'leaves the calendar' }]);
    events.moveClock(launchId, advanceMs);
    await options.afterClockMoved();
    return { now: iso(clock.now(launchId)) };
  });
  answer(controlCalls.listFaults, () => ({ faults: faults.list() }));
  answer(controlCalls.armFault, ({ body: fault }) => {
    if (fault.launchId !== undefined) launches.get(fault.launchId);
    return faults.arm(fault);
  });
  answer(controlCalls.clearFaults, () => faults.clear());
  answer(controlCalls.getRateLimit, rateLimitNow);
  answer(controlCalls.setRateLimit, ({ body }) => {
    rateLimit.set(body);
    return rateLimitNow();
  });
  answer(controlCalls.clearRateLimit, () => rateLimit.clear());
}

/** The data behind an upload, a file and a job, and the way back to the seeded data. */
function answerData(answer: Answer, options: ControlOptions): void {
  answer(controlCalls.getUpload, async ({ path }) => {
    const parts = await options.uploads.digests(path.id);
    if (!parts) throw new SandboxError('upload_session_not_found');
    return { uploadId: path.id, parts };
  });
  answer(controlCalls.getFile, ({ path }) => {
    const file = options.files.find(path.id);
    if (!file) throw new SandboxError('file_not_found');
    const { id, userId, launchId, originalName, size, sourceType, status, reason, mediaType, sha256 } = file;
    const createdAt = iso(file.createdAtMs);
    const made = options.items.findByFile(id);
    const item = made && { collectionId: made.collectionId, itemId: made.id };
    return {
      ...{ id, userId, launchId, originalName, size, sourceType, status, reason, mediaType, sha256, createdAt, item },
    };
  });
  answer(controlCalls.getJob, ({ path }) => {
    const job = options.jobs.find(path.id);
    if (!job) throw new SandboxError('inference_job_not_found');
    const { id, modelId, type, fileId, status, reason, resultName } = job;
    // A job belongs to whom its file does.
    const userId = options.files.find(fileId)?.userId ?? null;
    return { id, modelId, type, fileId, userId, status, reason, resultName, startedAt: iso(job.startedAtMs) };
  });
  answer(controlCalls.reset, async () => {
    await options.reset();
    return { status: 'ok' } as const;
  });
}

function viewOperation(launches: Launches, operation: Operation): ControlAnswer<typeof controlCalls.approveOperation> {
  const launch = launches.get(operation.launchId);
  return {
    operationId: operation.id,
    launchId: launch.id,
    appId: launch.appId,
    userId: launch.userId,
    status: operation.status,
    name: operation.name,
    description: operation.description,
    // Checked to be an object when the operation was created.
    parameters: operation.parameters as Record<string, unknown>,
    createdAt: iso(operation.createdAtMs),
    updatedAt: iso(operation.updatedAtMs),
    expiresAt: iso(operation.expiresAtMs),
  };
}
