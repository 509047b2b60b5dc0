import { Router } from 'express';
import { getDownloadUrl, getFileStatus } from '../../contract/index.ts';
import { requireApiKey, type ApiKeys } from '../identity/api-keys.ts';
import { methodNotAllowed } from '../web/error-boundary.ts';
import { parseValues, SandboxError } from '../web/sandbox-error.ts';
import type { DownloadLinks } from './download-links.ts';
import type { FileRecord, Files } from './files.ts';

export interface FileRoutesOptions {
  readonly files: Files;
  readonly keys: ApiKeys;
  readonly links: DownloadLinks;
  readonly blobDir: string;
}

/** File status, download URL (spec 4.5, 4.6) and the downloads themselves. */
export function fileRoutes({ files, keys, links, blobDir }: FileRoutesOptions): Router {
  const router = Router({ caseSensitive: true });
  const admin = requireApiKey(keys, ['files_admin'], () => new SandboxError(401, 'unauthorized', 'Unauthorized Request'));

  function getFile(id: string): FileRecord {
    const file = files.find(id);
    if (!file) throw new SandboxError(404, 'file_not_found', 'File not found');
    return file;
  }

  router
    .route(getFileStatus.path)
    .get(admin, (req, res) => {
      const file = getFile(String(req.params['id']));
      res.json({ id: file.id, originalName: file.originalName, status: file.status, createdAt: file.createdAtMs });
    })
    .all(methodNotAllowed('GET'));

  router
    .route(getDownloadUrl.path)
    .get(admin, (req, res) => {
      const query = parseValues(getDownloadUrl.query, req.query);
      const url = links.create(getFile(query.fileId).id, query.useDefaultContentType === 'true');
      res.type('text/plain').send(url);
    })
    .all(methodNotAllowed('GET'));

  router
    .route('/download/:fileId')
    .get((req, res, next) => {
      const { useDefaultContentType } = links.verify(req.params.fileId, req.query);
      const file = getFile(req.params.fileId);
      res.attachment(file.originalName);
      res.type((useDefaultContentType && file.mediaType) || 'application/octet-stream');
      res.set({ 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': 'sandbox', 'Cache-Control': 'private, no-transform' });
      res.sendFile(file.blob, { root: blobDir, dotfiles: 'allow', cacheControl: false }, (error) => {
        if (error && !res.headersSent) next(error);
      });
    })
    .all(methodNotAllowed('GET'));

  return router;
}
