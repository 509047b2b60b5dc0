import type { BeforeCall } from '../call/before-call.ts';
import type { IdentityStores } from '../identity/identity-slice.ts';
import type { Services, Slice } from '../slices.ts';
import type { CatalogStores } from '../stac/catalog-slice.ts';
import { itemOfFile } from './file-items.ts';
import { UploadEngine } from '../uploads/upload-engine.ts';
import { UploadSessions } from '../uploads/upload-sessions.ts';
import { createDownloadLinks } from './download-links.ts';
import { FileProcessing, type FileProcessingOptions } from './file-processing.ts';
import { Files } from '../uploads/files.ts';
import { fileRoutes, type FileRoutesOptions } from './routes.ts';

export interface FilesStores {
  readonly files: Files;
  readonly uploadSessions: UploadSessions;
  readonly uploads: UploadEngine;
  readonly processing: FileProcessing;
  /** Options of the file routes, for the platform and for the sandbox's own pages. */
  readonly fileApi: Omit<FileRoutesOptions, 'before'>;
}

/** Opens files, their uploads and their processing (sections 4.3 to 4.6). */
export function openFiles(
  { database, clock, signer, profile, confinement, folders, log, publicUrl, freeBytes }: Services,
  { users }: IdentityStores,
  { catalog }: CatalogStores,
  inspection: Pick<FileProcessingOptions, 'job' | 'limits'>,
): Slice<FilesStores, { readonly before: BeforeCall }> {
  const { blobDir, overviewDir, workDir } = folders;
  const files = new Files(database, clock);
  const uploadSessions = new UploadSessions(database);
  const uploads = new UploadEngine({
    ...{ sessions: uploadSessions, files, clock, blobDir, freeBytes },
    limits: profile.limits,
  });
  const processing = new FileProcessing({
    ...{ files, confinement, blobDir, overviewDir, workDir, log },
    publish(file, facts) {
      const uploader = users.find(file.userId);
      if (!uploader) return;
      const now = clock.now(file.launchId);
      const item = itemOfFile(file, facts, uploader, catalog.collections.ensureUploadsOf(uploader, now), now);
      if (item) catalog.items.put(item);
    },
    ...inspection,
  });
  const fileApi = {
    ...{ files, uploads, processing, blobDir, freeBytes },
    links: createDownloadLinks(signer, clock, publicUrl),
    uploaderId: () => users.list()[0]?.id ?? '',
  };
  const sweep = async () => {
    const swept = await uploads.sweep();
    if (swept > 0) log.info({ swept }, 'removed idle upload sessions');
  };
  return {
    stores: { files, uploadSessions, uploads, processing, fileApi },
    topics: [
      ['files', ['files']],
      ['calls', ['uploads', 'upload_parts']],
    ],
    routes: ({ before }) => fileRoutes({ ...fileApi, before }),
    async start() {
      await uploads.open();
      files.requeueUnfinished();
      processing.wake();
      await sweep();
    },
    pause: () => processing.stop(),
    async resume() {
      await processing.restart();
      processing.wake();
    },
    forget: () => void database.exec('delete from files; delete from uploads'),
    results: [overviewDir],
    afterForget: () => uploads.open(),
    sweep,
    async close() {
      await processing.close();
      await uploads.close();
    },
  };
}
