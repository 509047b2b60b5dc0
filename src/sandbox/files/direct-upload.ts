import type { Request } from 'express';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { fileName, limits, uploadFile, type SourceType } from '../../contract/index.ts';
import { stored } from '../rows.ts';
import { newId } from '../secrets.ts';
import { requireRoom } from '../uploads/free-space.ts';
import { appendPart, drainInto } from '../uploads/part-file.ts';
import { sessionNotFound } from '../uploads/upload-sessions.ts';
import { asStorageError, fileRules } from '../uploads/upload-rules.ts';
import { readFileForm } from '../web/file-form.ts';
import { invalid, parseValues, SandboxError } from '../web/sandbox-error.ts';
import type { FileRecord, Files } from '../uploads/files.ts';

export interface DirectUploadOptions {
  readonly files: Files;
  readonly blobDir: string;
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

const tooLarge = () =>
  new SandboxError('file_too_large', {
    message: `File is larger than ${limits.directUploadBytes} bytes: upload it in chunks`,
  });

/** Upload type 1 (spec 4.3): streams the form's file to disk; the file is QUEUED when it is all there and the form is good. */
export async function receiveDirectUpload(
  req: Request,
  userId: string,
  { files, blobDir, freeBytes }: DirectUploadOptions,
): Promise<FileRecord> {
  const blob = newId('blob');
  const path = join(blobDir, blob);
  const form = { fileField: uploadFile.fileField, fields: z.record(z.string(), z.string()) };
  try {
    return await readFileForm(
      req,
      req,
      { ...form, maxBytes: limits.directUploadBytes, tooLarge },
      async ({ fileName: nameInForm, content, end }) => {
        const name = requireName(nameInForm);
        await requireRoom(blobDir, fileRules, freeBytes);
        const sink = await appendPart(path, 0);
        const sizeBytes = await drainInto(sink, content).catch(async (error: unknown) => {
          await sink.undo();
          throw error;
        });
        const fields = await end();
        const { sourceType } = parseValues(
          uploadFile.fields,
          withoutEmpty({ sourceType: fields['sourceType'] || req.query['sourceType'] }),
        );
        // Check and insert in one synchronous step, because a reset deletes blobs without a record.
        if (!existsSync(path)) throw sessionNotFound();
        return insert(files, { userId, blob, sourceType, name, sizeBytes });
      },
    );
  } catch (error) {
    await rm(path, { force: true });
    throw asStorageError(error, fileRules);
  }
}

function insert(
  files: Files,
  file: { userId: string; blob: string; sourceType: SourceType; name: string; sizeBytes: number },
): FileRecord {
  const id = newId('file');
  files.insert(id, { ...file, fileName: file.name, launchId: null, properties: {} });
  return stored(files.find(id));
}

function requireName(name: string | undefined): string {
  const read = fileName.safeParse(name ?? '');
  if (!read.success)
    throw invalid(
      read.error.issues.map(({ message }) => ({ path: uploadFile.fileField, message: `its name ${message}` })),
    );
  return read.data;
}

/** Removes missing and empty values, so that they take their defaults. */
function withoutEmpty(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== ''));
}
