import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Request, RequestHandler, Response, Router } from 'express';
import {
  completeFileUpload,
  generateUploadId,
  getDownloadUrl,
  getFileStatus,
  uploadFile,
  uploadFileChunk,
} from '../../contract/index.ts';
import { iso } from '../clock.ts';
import type { BeforeCall, PlatformRoute } from '../call/before-call.ts';
import { bodyOf } from '../call/apply-fault.ts';
import { CallRouter } from '../call/call-router.ts';
import { signedCalls } from '../call/signed-calls.ts';
import type { UploadAccess, UploadEngine } from '../uploads/upload-engine.ts';
import { fileRules } from '../uploads/upload-rules.ts';
import { sessionNotFound } from '../uploads/upload-sessions.ts';
import { contextOf } from '../web/call-context.ts';
import { fieldsOf } from '../web/form-body.ts';
import { parseValues, SandboxError } from '../web/sandbox-error.ts';
import { receiveDirectUpload } from './direct-upload.ts';
import type { DownloadLinks } from './download-links.ts';
import type { FileProcessing } from './file-processing.ts';
import type { FileRecord, Files } from '../uploads/files.ts';
import { readRange, setValidator } from '../web/ranges.ts';
import { sendAsDownload } from '../web/untrusted-content.ts';

export interface FileRoutesOptions {
  readonly files: Files;
  readonly before: BeforeCall;
  readonly uploads: UploadEngine;
  readonly processing: FileProcessing;
  readonly links: DownloadLinks;
  readonly blobDir: string;
  /** Returns the owner of files that come without a launch: an API key belongs to nobody. */
  readonly uploaderId: () => string;
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

/** The file endpoints (spec 4.3 to 4.6) and the downloads themselves. */
export function fileRoutes(options: FileRoutesOptions): Router {
  const { files, before, uploads, processing, links, blobDir } = options;
  const link: RequestHandler = (req, res, next) => {
    contextOf(res).useDefaultContentType = links.verify(String(req.params['fileId']), req.query).useDefaultContentType;
    next();
  };
  const access: UploadAccess = {
    rules: fileRules,
    check(session) {
      // A session of a launch is the external-app group's.
      if (session.launchId !== null) throw sessionNotFound();
    },
  };

  function getFile(id: string): FileRecord {
    const file = files.find(id);
    if (!file) throw new SandboxError('file_not_found');
    return file;
  }

  function answerUploaded(res: Response, file: FileRecord): void {
    processing.wake();
    res.json({ fileId: file.id, originalName: file.originalName, createdAt: iso(file.createdAtMs), size: file.size });
  }

  const calls = new CallRouter<PlatformRoute>((row) =>
    before(row, row.path === signedCalls.download.path ? link : undefined),
  );

  calls.on(uploadFile, async (req, res) =>
    answerUploaded(res, await receiveDirectUpload(req, options.uploaderId(), options)),
  );

  calls.on(generateUploadId, (req, res) => {
    const { fileName } = parseValues(generateUploadId.fields, {
      ...queryText(req, 'fileName'),
      ...fieldsOf(req),
    });
    const { id, key } = uploads.initiate({ launchId: null, operationId: null }, fileName);
    res.json({ uploadId: id, key });
  });

  calls.on(uploadFileChunk, async (req, res) => {
    const part = await uploads.receiveChunk(req, bodyOf(req, res), access);
    res.json({ message: `Chunk ${part.partNumber} uploaded`, partNumber: part.partNumber, size: part.size });
  });

  calls.on(completeFileUpload, async (req, res) => {
    const request = parseValues(completeFileUpload.request, req.body);
    answerUploaded(
      res,
      await uploads.complete(request, options.uploaderId, {
        ...access,
        failsInWork: contextOf(res).failsInWork ?? false,
      }),
    );
  });

  calls.on(getFileStatus, (req, res) => {
    const file = getFile(String(req.params['id']));
    res.json({ id: file.id, originalName: file.originalName, status: file.status, createdAt: file.createdAtMs });
  });

  calls.on(getDownloadUrl, (req, res) => {
    const query = parseValues(getDownloadUrl.query, req.query);
    const url = links.create(getFile(query.fileId).id, query.useDefaultContentType === 'true');
    res.type('text/plain').send(url);
  });

  calls.on(signedCalls.download, async (req, res, next) => {
    const { useDefaultContentType = false } = contextOf(res);
    const file = getFile(String(req.params['fileId']));
    sendAsDownload(res, file.originalName, (useDefaultContentType && file.mediaType) || 'application/octet-stream');
    setValidator(res, await stat(join(blobDir, file.blob)));
    readRange(req, file.size);
    res.sendFile(file.blob, { root: blobDir, dotfiles: 'allow', cacheControl: false }, (error) => {
      if (error && !res.headersSent) next(error);
    });
  });

  return calls.finish();
}

function queryText(req: Request, name: string): Record<string, unknown> {
  return req.query[name] === undefined ? {} : { [name]: req.query[name] };
}
