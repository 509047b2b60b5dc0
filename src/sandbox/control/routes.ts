import { Router, type Response } from 'express';
import * as z from 'zod';
import { appManifest } from '../../contract/index.ts';
import { iso, type SandboxClock } from '../clock.ts';
import type { Files } from '../uploads/files.ts';
import type { Items } from '../stac/items.ts';
import type { InferenceJobs } from '../inference/inference-jobs.ts';
import type { Operation, Operations } from '../external-app/operations.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import { permissions } from '../identity/permissions.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import { newUser, type Users } from '../identity/users.ts';
import type { Apps } from '../marketplace/apps.ts';
import type { Launch } from '../identity/launch.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import { newLaunch, type Launches } from '../marketplace/launches.ts';
import { harOf } from '../referee/har.ts';
import { junitXml } from '../referee/junit.ts';
import { unattributed } from '../referee/call-writer.ts';
import type { Trace } from '../referee/trace.ts';
import type { Verdicts } from '../referee/verdicts.ts';
import type { UploadEngine } from '../uploads/upload-engine.ts';
import type { UploadSessions } from '../uploads/upload-sessions.ts';
import { methodNotAllowed } from '../error-boundary.ts';
import { jsonBody } from '../web/json-body.ts';
import { invalid, parseValues, SandboxError } from '../web/sandbox-error.ts';
import { newFault } from '../call/fault.ts';
import type { Faults } from '../call/faults.ts';
import { newRateLimit, type RateLimit } from '../call/rate-limit.ts';

export interface ControlOptions {
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

/** Body of `POST /sandbox/keys`. */
export const newKey = z.object({
  permissions: z
    .array(z.enum(permissions, `must be one of ${permissions.join(', ')}`))
    .min(1, 'must name at least one permission'),
  /** App that owns the key. The key identifies the app's calls without an identity token. */
  appId: z.string().optional(),
});
/** Body of `POST /sandbox/clock`. */
export const clockMove = z.object({
  advanceMs: z
    .int('must be an integer of milliseconds')
    .min(0, 'must be at least 0')
    .max(10 * 366 * 86_400_000, 'must be at most ten years'),
  launchId: z.string().optional(),
});

/** Query of a launch's trace. */
export const traceQuery = z.object({ format: z.enum(['json', 'har'], 'must be json or har').default('json') });
/** Query of a launch's verdict. */
export const verdictQuery = z.object({ format: z.enum(['json', 'junit'], 'must be json or junit').default('json') });

/** Operations in one response. Each may hold 64 KiB of parameters. */
const maxOperations = 1_000;
/** The last instant that can be written as ISO 8601 with four digits of year. */
const endOfCalendarMs = Date.UTC(9999, 11, 31);

/** The sandbox's own calls, under `/sandbox`: no part of the platform. */
export function controlRoutes(options: ControlOptions): Router {
  const { apps, users, keys, launches, tokens, operations, uploadSessions, clock, events, faults, trace, verdicts } =
    options;
  const router = Router({ caseSensitive: true });

  router
    .route('/apps')
    .get((_req, res) => void res.json({ apps: apps.list() }))
    .post(jsonBody, (req, res) => {
      const manifest = parseValues(appManifest, req.body);
      res.status(201).json(apps.register(manifest));
    })
    .all(methodNotAllowed('GET', 'POST'));

  router
    .route('/users')
    .get((_req, res) => void res.json({ users: users.list() }))
    .post(jsonBody, (req, res) => void res.status(201).json(users.register(parseValues(newUser, req.body))))
    .all(methodNotAllowed('GET', 'POST'));

  router
    .route('/keys')
    .get((_req, res) => {
      res.json({
        keys: keys.list().map((key) => ({
          id: key.id,
          permissions: key.permissions,
          appId: key.appId,
          createdAt: iso(key.createdAtMs),
        })),
      });
    })
    .post(jsonBody, (req, res) => {
      const { permissions: granted, appId } = parseValues(newKey, req.body);
      if (appId !== undefined && !apps.find(appId)) throw new SandboxError('app_not_found');
      res.status(201).json(keys.create(granted, appId));
    })
    .all(methodNotAllowed('GET', 'POST'));
  router
    .route('/keys/:id')
    .delete((req, res) => {
      if (!keys.revoke(req.params.id)) throw new SandboxError('key_not_found');
      res.status(204).end();
    })
    .all(methodNotAllowed('DELETE'));

  router
    .route('/launches')
    .post(jsonBody, (req, res) => {
      const { launch, issued, launchUrl } = launches.create(parseValues(newLaunch, req.body));
      res.status(201).json({ launchId: launch.id, token: issued.token, launchUrl, expiresAt: iso(issued.expiresAtMs) });
    })
    .all(methodNotAllowed('POST'));
  router
    .route('/launches/:launchId')
    .get((req, res) => void res.json(viewLaunch(launches.get(req.params.launchId))))
    .all(methodNotAllowed('GET'));
  router
    .route('/launches/:launchId/revoke')
    .post(jsonBody, (req, res) => {
      launches.revoke(req.params['launchId']);
      res.status(204).end();
    })
    .all(methodNotAllowed('POST'));
  router
    .route('/trace')
    .get((req, res) => {
      const { format } = parseValues(traceQuery, req.query);
      const calls = trace.list(unattributed);
      res.json(format === 'har' ? harOf(calls, options.publicUrl()) : { calls });
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/launches/:launchId/trace')
    .get((req, res) => {
      const { format } = parseValues(traceQuery, req.query);
      const { id } = launches.get(req.params.launchId);
      const calls = trace.list(id);
      res.json(format === 'har' ? harOf(calls, options.publicUrl()) : { total: trace.count(id), calls });
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/launches/:launchId/verdict')
    .get(async (req, res) => {
      const { format } = parseValues(verdictQuery, req.query);
      const launch = launches.get(req.params.launchId);
      await verdicts.read([launch.id]);
      const verdict = verdicts.of(launch.id).verdict;
      if (format === 'junit') res.type('application/xml').send(junitXml([{ name: launch.id, verdict }]));
      else res.json({ launchId: launch.id, appId: launch.appId, ...verdict });
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/operations')
    .get((_req, res) => void res.json({ operations: operations.list(null, maxOperations).map(viewOperation) }))
    .all(methodNotAllowed('GET'));
  for (const [path, status] of [
    ['approve', 'APPROVED'],
    ['reject', 'REJECTED'],
  ] as const) {
    router
      .route(`/operations/:operationId/${path}`)
      .post(
        jsonBody,
        (req, res) =>
          void res.json(viewOperation(operations.decide(req.params['operationId'], status, 'a control call'))),
      )
      .all(methodNotAllowed('POST'));
  }

  router
    .route('/clock')
    .get((_req, res) => answerClock(res, null))
    .post(jsonBody, async (req, res) => {
      const { advanceMs, launchId = null } = parseValues(clockMove, req.body);
      if (launchId !== null) launches.get(launchId);
      if (clock.now(launchId) + advanceMs > endOfCalendarMs)
        throw invalid([{ path: 'advanceMs', message: 'leaves the calendar' }]);
      events.moveClock(launchId, advanceMs);
      await options.afterClockMoved();
      answerClock(res, launchId);
    })
    .all(methodNotAllowed('GET', 'POST'));

  router
    .route('/faults')
    .get((_req, res) => void res.json({ faults: faults.list() }))
    .post(jsonBody, (req, res) => {
      const fault = parseValues(newFault, req.body);
      if (fault.launchId !== undefined) launches.get(fault.launchId);
      res.status(201).json(faults.arm(fault));
    })
    .delete((_req, res) => {
      faults.clear();
      res.status(204).end();
    })
    .all(methodNotAllowed('GET', 'POST', 'DELETE'));

  router
    .route('/rate-limit')
    .get((_req, res) => answerRateLimit(res))
    .post(jsonBody, (req, res) => {
      options.rateLimit.set(parseValues(newRateLimit, req.body));
      answerRateLimit(res);
    })
    .delete((_req, res) => {
      options.rateLimit.clear();
      res.status(204).end();
    })
    .all(methodNotAllowed('GET', 'POST', 'DELETE'));

  router
    .route('/uploads/:id')
    .get(async (req, res) => {
      const parts = await options.uploads.digests(req.params.id);
      if (!parts) throw new SandboxError('upload_session_not_found');
      res.json({ uploadId: req.params.id, parts });
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/files/:id')
    .get((req, res) => {
      const file = options.files.find(req.params.id);
      if (!file) throw new SandboxError('file_not_found');
      const { id, userId, launchId, originalName, size, sourceType, status, reason, mediaType, sha256 } = file;
      const createdAt = iso(file.createdAtMs);
      const made = options.items.findByFile(id);
      const item = made && { collectionId: made.collectionId, itemId: made.id };
      res.json({
        ...{ id, userId, launchId, originalName, size, sourceType, status, reason, mediaType, sha256, createdAt, item },
      });
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/jobs/:id')
    .get((req, res) => {
      const job = options.jobs.find(req.params.id);
      if (!job) throw new SandboxError('inference_job_not_found');
      const { id, modelId, type, fileId, status, reason, resultName } = job;
      // A job belongs to whom its file does.
      const userId = options.files.find(fileId)?.userId ?? null;
      res.json({ id, modelId, type, fileId, userId, status, reason, resultName, startedAt: iso(job.startedAtMs) });
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/reset')
    .post(jsonBody, async (_req, res) => {
      await options.reset();
      res.json({ status: 'ok' });
    })
    .all(methodNotAllowed('POST'));

  function answerRateLimit(res: Response): void {
    const { requestsPerMinute = null, endpoint = null } = options.rateLimit.get() ?? {};
    res.json({ requestsPerMinute, endpoint });
  }

  function answerClock(res: Response, launchId: string | null): void {
    res.json({ now: iso(clock.now(launchId)) });
  }

  function viewLaunch(launch: Launch) {
    return {
      launchId: launch.id,
      appId: launch.appId,
      userId: launch.userId,
      renewPolicy: launch.renewPolicy,
      createdAt: iso(launch.createdAtMs),
      expiresAt: iso(tokens.expiryOf(launch.id)),
      operations: operations.list(launch.id, maxOperations).map(viewOperation),
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
  }

  function viewOperation(operation: Operation) {
    const launch = launches.get(operation.launchId);
    return {
      operationId: operation.id,
      launchId: launch.id,
      appId: launch.appId,
      userId: launch.userId,
      status: operation.status,
      name: operation.name,
      description: operation.description,
      parameters: operation.parameters,
      createdAt: iso(operation.createdAtMs),
      updatedAt: iso(operation.updatedAtMs),
      expiresAt: iso(operation.expiresAtMs),
    };
  }

  return router;
}
