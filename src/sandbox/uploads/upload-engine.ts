import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat, statfs } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { limits, uploadChunk, type CompleteUploadRequest } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { FileRecord, Files } from '../files/files.ts';
import { newId } from '../secrets.ts';
import { invalid, parseValues, SandboxError } from '../web/sandbox-error.ts';
import { readChunkForm, refuseOversized } from './chunk-form.ts';
import { appendPart, digestPart, drainInto } from './part-file.ts';
import { SessionLock } from './session-lock.ts';
import type { UploadPart, UploadSession, UploadSessions } from './upload-sessions.ts';

/** Who may use a session, and when: the group that an upload came through decides. */
export interface UploadAccess {
  /** Throws 404 for a session that is not the caller's, 400 where it may not be used now. */
  check(session: UploadSession): void;
  /** Told what a chunk says of itself, as soon as it is read. */
  onFields?(fields: { uploadId: string; key: string; partNumber: number }): void;
}

export interface UploadEngineOptions {
  readonly sessions: UploadSessions;
  readonly files: Files;
  readonly clock: SandboxClock;
  /** Folder of all uploaded bytes, parts and finished files alike: completing moves nothing. */
  readonly blobDir: string;
  /** Free bytes under a folder. Default: what the system says. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

/** Left free for the database. */
const reserveBytes = 64 * 1024 * 1024;
const noRoom = (cause?: unknown) => new SandboxError(500, 'insufficient_storage', 'Internal Server Error', { cause });
const notFound = () => new SandboxError(404, 'upload_session_not_found', 'Upload session not found');

/**
 * The multipart upload engine. Parts are appended to one file as they arrive, so completing copies
 * nothing; a part counts when it is committed, and until then its bytes are cut off again.
 */
export class UploadEngine {
  #options: UploadEngineOptions;
  #lock = new SessionLock();

  constructor(options: UploadEngineOptions) {
    this.#options = options;
  }

  /** Makes the folders and removes bytes that nothing refers to: of spools and sessions that a crash left. */
  async open(): Promise<void> {
    const { blobDir, sessions } = this.#options;
    await mkdir(blobDir, { recursive: true });
    const referenced = sessions.referencedBlobs();
    for (const name of await readdir(blobDir)) {
      if (!referenced.has(name)) await rm(join(blobDir, name), { force: true });
    }
  }

  initiate(owner: { launchId: string; operationId: string }, fileName: string): UploadSession {
    return this.#options.sessions.create(owner, fileName, this.#options.clock.now(owner.launchId));
  }

  /** Takes one chunk (steps 6 of spec 4.8). `body` is the request, or what a fault left of it. */
  async receiveChunk(req: IncomingMessage, body: Readable, access: UploadAccess): Promise<UploadPart> {
    refuseOversized(req);
    // In an object: what the callback below sets is read after it.
    const taken: { stored?: Promise<UploadPart>; spoolPath?: string } = {};
    const { promise: formRead, resolve: acceptForm, reject: rejectForm } = Promise.withResolvers<void>();
    formRead.catch(() => {});
    try {
      const form = await readChunkForm(req, body, {
        onFile: async (content, fieldsSoFar) => {
          const known = uploadChunk.fields.safeParse(fieldsSoFar);
          if (!known.success) {
            taken.spoolPath = join(this.#options.blobDir, newId('spool'));
            return this.#spool(content, taken.spoolPath);
          }
          // The usual order: all fields first. The bytes go straight to their place.
          const read = Promise.withResolvers<void>();
          taken.stored = this.#store(known.data, access, () => content, read.resolve, formRead);
          await Promise.race([read.promise, taken.stored]);
        },
      });
      const fields = parseValues(uploadChunk.fields, form.fields);
      acceptForm();
      const { stored, spoolPath = '' } = taken;
      if (stored) return await stored;
      return await this.#store(fields, access, () => createReadStream(spoolPath, { highWaterMark: 1024 * 1024 }), () => {}, formRead);
    } catch (error) {
      rejectForm(error);
      await taken.stored?.catch(() => {});
      throw asStorageError(error);
    } finally {
      if (taken.spoolPath) await rm(taken.spoolPath, { force: true });
    }
  }

  /** Completes an upload (step 7 of spec 4.8). Again after success: the same file. */
  complete(request: CompleteUploadRequest, userOf: (session: UploadSession) => string, access: UploadAccess): Promise<FileRecord> {
    const { sessions, files, blobDir } = this.#options;
    return this.#lock.run(request.uploadId, async () => {
      const session = this.#session(request, access);
      if (session.fileId !== null) {
        const file = files.find(session.fileId)!;
        if (file.size !== request.fileSize) throw sizeMismatch(request.fileSize, file.size);
        return file;
      }
      if (sessions.countParts(session.id) === 0) throw new SandboxError(400, 'upload_incomplete', 'Upload has no chunk');
      if (session.receivedBytes !== request.fileSize) throw sizeMismatch(request.fileSize, session.receivedBytes);
      await this.#requireBytes(session, join(blobDir, session.blob));
      const fileId = newId('file');
      sessions.complete(session.id, fileId, () => files.insert(fileId, session, userOf(session), request));
      return files.find(fileId)!;
    });
  }

  /** Removes sessions without a chunk for `limits.uploadSessionIdleMs`. Never a completed one. */
  async sweep(): Promise<number> {
    const { sessions, clock } = this.#options;
    const idle = sessions.listIdle(limits.uploadSessionIdleMs, (launchId) => clock.now(launchId));
    for (const session of idle) await this.#lock.run(session.id, () => this.#discard(session));
    return idle.length;
  }

  #session(named: { uploadId: string; key: string }, access: UploadAccess): UploadSession {
    const session = this.#options.sessions.find(named.uploadId);
    if (!session || session.key !== named.key) throw notFound();
    access.check(session);
    return session;
  }

  /** Reads the content to its end into the session's file and commits it when `formRead` says that the whole request was good. */
  #store(
    fields: { uploadId: string; key: string; partNumber: number },
    access: UploadAccess,
    openContent: () => Readable,
    onTaken: () => void,
    formRead: Promise<void>,
  ): Promise<UploadPart> {
    const { sessions, clock, blobDir } = this.#options;
    access.onFields?.(fields);
    return this.#lock.run(fields.uploadId, async () => {
      const session = this.#session(fields, access);
      const earlier = sessions.part(session.id, fields.partNumber);
      const expected = sessions.countParts(session.id) + 1;
      if (!earlier) this.#requireNext(session, fields.partNumber, expected);
      if (!earlier) await this.#requireRoom();
      const sink = earlier ? digestPart() : await appendPart(join(blobDir, session.blob), session.receivedBytes);
      try {
        const written = await drainInto(sink, openContent());
        onTaken();
        await formRead;
        if (written.size === 0) throw invalid([{ path: uploadChunk.fileField, message: 'must not be empty' }]);
        const part = { partNumber: fields.partNumber, ...written };
        if (earlier) requireSameBytes(session, earlier, part);
        else sessions.commitPart(session.id, part, clock.now(session.launchId));
        return part;
      } catch (error) {
        await sink.undo();
        throw error;
      }
    });
  }

  #requireNext(session: UploadSession, received: number, expected: number): void {
    if (session.fileId !== null) throw new SandboxError(400, 'upload_completed', 'Upload is completed');
    if (received === expected) return;
    throw new SandboxError(400, 'chunk_out_of_order', `Chunk ${expected} is next, not ${received}`, { data: { expected, received } });
  }

  async #requireRoom(): Promise<void> {
    const free = await (this.#options.freeBytes ?? systemFreeBytes)(this.#options.blobDir);
    if (free < reserveBytes) throw noRoom();
  }

  /** A chunk whose file came before its fields waits in a file of its own. */
  async #spool(content: Readable, path: string): Promise<void> {
    await this.#requireRoom();
    const sink = await appendPart(path, 0);
    await drainInto(sink, content).catch(async (error: unknown) => {
      await sink.undo();
      throw error;
    });
  }

  /** The bytes on disk must be those that were acknowledged; else the upload has failed, and is cleaned up as the spec says. */
  async #requireBytes(session: UploadSession, path: string): Promise<void> {
    try {
      const { size } = await stat(path);
      if (size < session.receivedBytes) throw new Error(`${size} of ${session.receivedBytes} bytes are left of the upload`);
      if (size === session.receivedBytes) return;
      const file = await open(path, 'r+'); // a broken chunk's bytes, left by a crash
      await file.truncate(session.receivedBytes);
      await file.close();
    } catch (cause) {
      await this.#discard(session);
      throw new SandboxError(500, 'internal_error', 'Failed to complete upload', { cause });
    }
  }

  async #discard(session: UploadSession): Promise<void> {
    if (this.#options.sessions.discard(session.id)) await rm(join(this.#options.blobDir, session.blob), { force: true });
  }
}

function requireSameBytes(session: UploadSession, earlier: UploadPart, again: UploadPart): void {
  if (earlier.sha256 === again.sha256 && earlier.size === again.size) return;
  if (session.fileId !== null) throw new SandboxError(400, 'upload_completed', 'Upload is completed');
  throw new SandboxError(400, 'chunk_conflict', `Chunk ${earlier.partNumber} was uploaded with other bytes`);
}

function sizeMismatch(claimed: number, received: number): SandboxError {
  return new SandboxError(400, 'size_mismatch', `fileSize is ${claimed}, received were ${received} bytes`);
}

function asStorageError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL' ? noRoom(error) : error;
}

async function systemFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
