import type { Request, Response, Router } from 'express';
import {
  completeUpload,
  createOperation,
  getOperation,
  initiateUpload,
  renewToken,
  uploadChunk,
  userDetail,
  type WireProfile,
} from '../../contract/index.ts';
import { iso } from '../clock.ts';
import type { BeforeCall, PlatformRoute } from '../call/before-call.ts';
import { bodyOf } from '../call/apply-fault.ts';
import { CallRouter } from '../call/call-router.ts';
import { isRecord } from '../../files/index.ts';
import type { FileProcessing } from '../files/file-processing.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Users } from '../identity/users.ts';
import type { Launches } from '../marketplace/launches.ts';
import type { UploadEngine } from '../uploads/upload-engine.ts';
import { externalAppRules } from '../uploads/upload-rules.ts';
import { sessionNotFound, type UploadSession, type UploadSessions } from '../uploads/upload-sessions.ts';
import { contextOf } from '../web/call-context.ts';
import { invalid, parseValues } from '../web/sandbox-error.ts';
import { readIdempotencyKey, requireApproved, type Operations } from './operations.ts';

export interface ExternalAppOptions {
  readonly before: BeforeCall;
  readonly tokens: IdentityTokens;
  readonly launches: Launches;
  readonly users: Users;
  readonly operations: Operations;
  readonly uploads: UploadEngine;
  readonly uploadSessions: UploadSessions;
  readonly processing: FileProcessing;
  /** Optional fields of a completion that the platform of this profile refuses. */
  readonly refusedFields: WireProfile['refusedFields'];
}

type Calls = CallRouter<PlatformRoute>;

/** The seven calls of spec 4.8. */
export function externalAppRoutes(options: ExternalAppOptions): Router {
  const calls: Calls = new CallRouter<PlatformRoute>(options.before);
  answerOperations(calls, options);
  answerUploads(calls, options);
  return calls.finish();
}

/** For the referee: the operation that a call names, its status as the call came in, or that it is another launch's. */
function noteOperation(operations: Operations, res: Response, operationId: string | null): void {
  if (operationId === null) return;
  const { detail } = contextOf(res).notes;
  detail['operationId'] = operationId;
  const operation = operations.find(operationId);
  if (operation?.launchId === launchOf(res)) detail['operationStatus'] = operation.status;
  else if (operation) detail['foreign'] = 'operation';
}

/** The same of the upload that a call names, by id and key. */
function noteUpload(
  { operations, uploadSessions }: Pick<ExternalAppOptions, 'operations' | 'uploadSessions'>,
  res: Response,
  uploadId: string | null,
  key: string | null,
): void {
  const { detail } = contextOf(res).notes;
  Object.assign(detail, { ...(uploadId !== null && { uploadId }), ...(key !== null && { key }) });
  const byId = uploadId === null ? null : uploadSessions.find(uploadId);
  const byKey = key === null || byId?.key === key ? byId : uploadSessions.findByKey(key);
  if (byId && byId.launchId !== launchOf(res)) detail['foreign'] = 'upload';
  else if (byKey && byKey.launchId !== launchOf(res)) detail['foreign'] = 'key';
  else noteOperation(operations, res, (byId ?? byKey)?.operationId ?? null);
}

/** An upload session of this launch, while its operation is approved. */
const access = (operations: Operations, res: Response) => ({
  rules: externalAppRules,
  check(session: UploadSession) {
    if (session.launchId !== launchOf(res)) throw sessionNotFound();
    const operation = operations.find(session.operationId ?? '');
    if (operation) requireApproved(operation);
  },
});

/** Steps 1 to 4: the token, the user and the operation. */
function answerOperations(calls: Calls, { tokens, launches, users, operations }: ExternalAppOptions): void {
  calls.on(renewToken, (req, res) => {
    const launch = launches.get(launchOf(res));
    const issued = tokens.renew(tokenOf(req), launch);
    contextOf(res).notes.detail['rotated'] = issued.token !== tokenOf(req);
    res.json({ token: issued.token, expiresAt: iso(issued.expiresAtMs) });
  });

  calls.on(userDetail, (_req, res) => {
    const user = users.find(launches.get(launchOf(res)).userId);
    if (!user) throw new Error(`the user of launch ${launchOf(res)} was not found`);
    res.json(user);
  });

  calls.on(createOperation, (req, res) => {
    const idempotencyKey = readIdempotencyKey(req.get(createOperation.headers.idempotencyKey));
    const request = parseValues(createOperation.request, req.body);
    const operation = operations.create(launchOf(res), request, idempotencyKey);
    contextOf(res).notes.detail['operationId'] = operation.id;
    res.json({
      operationId: operation.id,
      status: 'REQUESTED',
      createdAt: iso(operation.createdAtMs),
      expiresAt: iso(operation.expiresAtMs),
    });
  });

  calls.on(getOperation, (req, res) => {
    const { operationId } = parseValues(getOperation.query, req.query);
    noteOperation(operations, res, operationId);
    const operation = operations.getOfLaunch(operationId, launchOf(res));
    res.json({
      operationId: operation.id,
      status: operation.status,
      name: operation.name,
      createdAt: iso(operation.createdAtMs),
      updatedAt: iso(operation.updatedAtMs),
      expiresAt: iso(operation.expiresAtMs),
    });
  });
}

/** Steps 5 to 7: the upload. */
function answerUploads(calls: Calls, options: ExternalAppOptions): void {
  const { launches, operations, uploads, processing, refusedFields } = options;

  calls.on(initiateUpload, (req, res) => {
    noteOperation(operations, res, textOf(req.body, 'operationId'));
    const request = parseValues(initiateUpload.request, req.body);
    const operation = operations.getOfLaunch(request.operationId, launchOf(res));
    requireApproved(operation);
    const session = uploads.initiate({ launchId: launchOf(res), operationId: operation.id }, request.fileName);
    Object.assign(contextOf(res).notes.detail, { uploadId: session.id, key: session.key });
    res.json({ uploadId: session.id, key: session.key });
  });

  calls.on(uploadChunk, async (req, res) => {
    const part = await uploads.receiveChunk(req, bodyOf(req, res), {
      ...access(operations, res),
      onFields({ uploadId, key, partNumber }) {
        noteUpload(options, res, uploadId, key);
        contextOf(res).notes.detail['partNumber'] = partNumber;
      },
      onMalformed(fields) {
        noteUpload(options, res, textOf(fields, 'uploadId'), textOf(fields, 'key'));
        const partNumber = textOf(fields, 'partNumber');
        if (partNumber !== null && /^-?\d{1,9}$/.test(partNumber))
          contextOf(res).notes.detail['partNumber'] = Number(partNumber);
      },
    });
    contextOf(res).notes.detail['size'] = part.size;
    res.json({ message: `Chunk ${part.partNumber} uploaded`, partNumber: part.partNumber, size: part.size });
  });

  calls.on(completeUpload, async (req, res) => {
    noteUpload(options, res, textOf(req.body, 'uploadId'), textOf(req.body, 'key'));
    const request = parseValues(completeUpload.request, req.body);
    const refused = refusedFields.filter((name) => request[name] !== undefined);
    if (refused.length > 0)
      throw invalid(refused.map((path) => ({ path, message: 'is no field of a completion on this platform' })));
    contextOf(res).notes.detail['fileSize'] = request.fileSize;
    const userId = launches.get(launchOf(res)).userId;
    const file = await uploads.complete(request, () => userId, {
      ...access(operations, res),
      failsInWork: contextOf(res).failsInWork ?? false,
    });
    processing.wake();
    contextOf(res).notes.detail['fileId'] = file.id;
    res.json({ fileId: file.id, originalName: file.originalName, createdAt: iso(file.createdAtMs), size: file.size });
  });
}

function tokenOf(req: Request): string {
  return String(req.params['token']);
}

function launchOf(res: Response): string {
  const { launchId } = contextOf(res);
  if (launchId === undefined) throw new Error('no launch was authenticated for this call');
  return launchId;
}

/** A text field of a body that has not been checked yet. */
function textOf(body: unknown, name: string): string | null {
  const value = isRecord(body) ? body[name] : null;
  return typeof value === 'string' ? value.slice(0, 512) : null;
}
