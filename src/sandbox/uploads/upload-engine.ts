import { createHash } from 'node:crypto';
import { createReadStream, rmSync } from 'node:fs';
import { mkdir, readdir, rm, stat, truncate } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type * as z from 'zod';
import { limits, uploadChunk, type CompleteUploadRequest, type WireLimits } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { FileRecord, Files, NewFile } from './files.ts';
import { stored } from '../rows.ts';
import { newId } from '../secrets.ts';
import { readFileForm } from '../web/file-form.ts';
import { invalid, SandboxError } from '../web/sandbox-error.ts';
import { requireRoom } from './free-space.ts';
import { appendPart, comparePart, drainInto, type StoredBytes } from './part-file.ts';
import { SessionLock } from './session-lock.ts';
import { asStorageError, chunkTooLarge, type UploadRules } from './upload-rules.ts';
import {
  sessionNotFound,
  type StoredPart,
  type UploadOwner,
  type UploadPart,
  type UploadSession,
  type UploadSessions,
} from './upload-sessions.ts';

type ChunkFields = z.output<typeof uploadChunk.fields>;

/** Access to a session. The group of calls that an upload came through decides it. */
export interface UploadAccess {
  readonly rules: UploadRules;
  /** True: the completion fails when its parts are put together, and is cleaned up (spec 4.4). Default false. */
  readonly failsInWork?: boolean;
  /** Throws 404 for a session that is not the caller's, 400 where it may not be used now. */
  check(session: UploadSession): void;
  /** Receives the fields of a chunk as soon as they are read. */
  onFields?(fields: ChunkFields): void;
  /** Receives the fields of a chunk that is refused because of them. */
  onMalformed?(fields: Readonly<Record<string, unknown>>): void;
}

export interface UploadEngineOptions {
  readonly sessions: UploadSessions;
  readonly files: Files;
  readonly clock: SandboxClock;
  /** Folder of all uploaded bytes, parts and finished files alike: completing moves nothing. */
  readonly blobDir: string;
  readonly limits: Pick<WireLimits, 'chunkBytes' | 'maxPartNumber'>;
  /** Free bytes under a folder. Default: what the system says. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

const copyBytes = 1024 * 1024;
/** Largest form of a chunk that is read to its end although the chunk is refused. */
const smallFormBytes = 1024 * 1024;
const empty = () => invalid([{ path: uploadChunk.fileField, message: 'must not be empty' }]);

/**
 * The multipart upload engine of both groups. Parts in order are appended to one file as they arrive, so
 * completing copies nothing; a part that came before its turn (file group only) waits in a file of its own
 * until the ones before it are there. A part counts when it is committed, and until then its bytes are cut off again.
 */
export class UploadEngine {
  #options: UploadEngineOptions;
  #lock = new SessionLock();
  #background = new Set<Promise<void>>();
  readonly #chunkFields: typeof uploadChunk.fields;
  #closing = false;

  constructor(options: UploadEngineOptions) {
    this.#options = options;
    const { partNumber } = uploadChunk.fields.shape;
    const { maxPartNumber } = options.limits;
    this.#chunkFields = uploadChunk.fields.extend({
      partNumber: partNumber.refine((number) => number <= maxPartNumber, `must be at most ${maxPartNumber}`),
    });
  }

  /** Makes the folders and removes bytes that nothing refers to: of spools and sessions that a crash left. */
  async open(): Promise<void> {
    const { blobDir, sessions } = this.#options;
    await mkdir(blobDir, { recursive: true });
    // List first, so that later files are not in the list. Check and delete in one synchronous step.
    const names = await readdir(blobDir);
    const referenced = sessions.referencedBlobs();
    for (const name of names)
      if (!referenced.has(name) && !sessions.refersTo(name)) rmSync(join(blobDir, name), { force: true });
  }

  initiate(owner: UploadOwner, fileName: string): UploadSession {
    return this.#options.sessions.create(owner, fileName, this.#options.clock.now(owner.launchId));
  }

  /** Takes one chunk (step 6 of spec 4.8, uploadChunk of 4.4). `body` is the request, or what a fault left of it. */
  async receiveChunk(req: IncomingMessage, body: Readable, access: UploadAccess): Promise<UploadPart> {
    const { chunkBytes } = this.#options.limits;
    const { sessions } = this.#options;
    let sessionId: string | undefined;
    try {
      return await readFileForm(
        req,
        body,
        {
          fileField: uploadChunk.fileField,
          fields: this.#chunkFields,
          maxBytes: chunkBytes,
          tooLarge: () => chunkTooLarge(access.rules, chunkBytes),
          onRefused: (fields) => access.onMalformed?.(fields),
        },
        async ({ before, content, end }) => {
          sessionId = before ? sessions.find(before.uploadId)?.id : undefined;
          // The usual order: all fields first. The bytes go straight to their place.
          if (before)
            return this.#store(before, access, () => content, end).catch(async (error: unknown) => {
              // Mistakes in the body come first. A large body, or one of unknown size, is not read to find them.
              if (!content.readableDidRead && Number(req.headers['content-length']) <= smallFormBytes)
                await requireGoodChunk(content, end);
              throw error;
            });
          return this.#spooled(content, access.rules, async (openContent) => {
            const fields = await end();
            sessionId = sessions.find(fields.uploadId)?.id;
            return this.#store(fields, access, openContent, end);
          });
        },
      );
    } catch (error) {
      // A reset has deleted the session and its bytes.
      if (sessionId !== undefined && !sessions.find(sessionId)) throw sessionNotFound();
      throw asStorageError(error, access.rules);
    }
  }

  /** Completes an upload (step 7 of spec 4.8). Again after success: the same file. */
  complete(
    request: CompleteUploadRequest,
    userOf: (session: UploadSession) => string,
    access: UploadAccess,
  ): Promise<FileRecord> {
    const { sessions, files } = this.#options;
    return this.#lock.run(request.uploadId, async () => {
      const session = this.#session(request, access);
      if (session.fileId !== null) {
        const file = stored(files.find(session.fileId));
        if (file.size !== request.fileSize) throw sizeMismatch(request.fileSize, file.size);
        return file;
      }
      const size = this.#requireWhole(session);
      if (size !== request.fileSize) throw sizeMismatch(request.fileSize, size);
      const whole = await this.#assemble(session, access);
      const fileId = newId('file');
      sessions.complete(session.id, fileId, () => files.insert(fileId, newFile(whole, userOf(whole), request)));
      return stored(files.find(fileId));
    });
  }

  /** Removes sessions without a chunk for `limits.uploadSessionIdleMs`. Never a completed one. */
  async sweep(): Promise<number> {
    const { sessions, clock } = this.#options;
    const idleOf = (id: string | null) =>
      sessions.listIdle(limits.uploadSessionIdleMs, (launchId) => clock.now(launchId), id);
    // A session with a call in progress is not idle. Waiting for it would block the sweep.
    const idle = idleOf(null).filter(({ id }) => !this.#lock.isHeld(id));
    for (const session of idle) {
      // Check again under the lock, because a chunk may have arrived.
      await this.#lock.run(
        session.id,
        async () => void (idleOf(session.id).length > 0 && (await this.#discard(session))),
      );
    }
    return idle.length;
  }

  #session(named: { uploadId: string; key: string }, access: UploadAccess): UploadSession {
    const session = this.#options.sessions.find(named.uploadId);
    if (!session || session.key !== named.key) throw sessionNotFound();
    access.check(session);
    return session;
  }

  /** Reads the content to its end into the session's file, and commits it after `end` if the whole request was good. */
  #store(
    fields: ChunkFields,
    access: UploadAccess,
    openContent: () => Readable,
    end: () => Promise<unknown>,
  ): Promise<UploadPart> {
    const { sessions, clock, blobDir, freeBytes } = this.#options;
    access.onFields?.(fields);
    return this.#lock.run(fields.uploadId, async () => {
      const session = this.#session(fields, access);
      const earlier = sessions.part(session.id, fields.partNumber);
      const isNext = fields.partNumber === sessions.nextPartNumber(session.id);
      if (earlier) return this.#compare(session, earlier, openContent(), end);
      this.#requirePlace(session, fields.partNumber, access.rules);
      await requireRoom(blobDir, access.rules, freeBytes);
      const waitingBlob = isNext ? null : newId('blob');
      const sink = await (waitingBlob === null
        ? appendPart(join(blobDir, session.blob), session.appendedBytes)
        : appendPart(join(blobDir, waitingBlob), 0));
      try {
        const size = await drainInto(sink, openContent());
        await end();
        if (size === 0) throw empty();
        const part = { partNumber: fields.partNumber, size };
        sessions.commitPart(session.id, { ...part, blob: waitingBlob }, clock.now(session.launchId));
        if (isNext) this.#appendInTheBackground(session.id);
        return part;
      } catch (error) {
        await sink.undo();
        if (waitingBlob !== null) await rm(join(blobDir, waitingBlob), { force: true });
        throw error;
      }
    });
  }

  /** A part that is there already: the same bytes are taken again, others are a conflict. */
  async #compare(
    session: UploadSession,
    earlier: StoredPart,
    content: Readable,
    end: () => Promise<unknown>,
  ): Promise<UploadPart> {
    const sink = await comparePart(this.#bytesOf(session, earlier));
    try {
      const size = await drainInto(sink, content);
      await end();
      if (size === 0) throw empty();
    } finally {
      await sink.undo();
    }
    if (sink.isSame()) return { partNumber: earlier.partNumber, size: earlier.size };
    if (session.fileId !== null) throw new SandboxError('upload_completed');
    throw new SandboxError('chunk_conflict', { message: `Chunk ${earlier.partNumber} was uploaded with other bytes` });
  }

  /** Returns a part's location: in the session's file behind earlier parts, or in the part's own file. */
  #bytesOf({ id, blob }: UploadSession, part: StoredPart): StoredBytes {
    const before = this.#options.sessions.parts(id).filter(({ partNumber }) => partNumber < part.partNumber);
    const offset = part.blob === null ? before.reduce((sum, { size }) => sum + size, 0) : 0;
    return { path: join(this.#options.blobDir, part.blob ?? blob), offset, size: part.size };
  }

  /** Each part of a session with its digest, which is taken now; chunks wait meanwhile. Null where there is no such session. */
  digests(id: string): Promise<(UploadPart & { readonly sha256: string })[] | null> {
    return this.#lock.run(id, async () => {
      const session = this.#options.sessions.find(id);
      if (!session) return null;
      const parts: (UploadPart & { readonly sha256: string })[] = [];
      for (const part of this.#options.sessions.parts(id)) {
        const { path, offset, size } = this.#bytesOf(session, part);
        const hash = createHash('sha256');
        await pipeline(
          createReadStream(path, { start: offset, end: offset + size - 1, highWaterMark: copyBytes }),
          hash,
        );
        parts.push({ partNumber: part.partNumber, size, sha256: hash.digest('hex') });
      }
      return parts;
    });
  }

  #requirePlace(session: UploadSession, received: number, rules: UploadRules): void {
    if (session.fileId !== null) throw new SandboxError('upload_completed');
    const expected = this.#options.sessions.nextPartNumber(session.id);
    if (rules.anyOrder || received === expected) return;
    throw new SandboxError('chunk_out_of_order', {
      message: `Chunk ${expected} is next, not ${received}`,
      data: { expected, received },
    });
  }

  /** Answers first: what waited is moved before the session's next call, which the lock holds back. */
  #appendInTheBackground(id: string): void {
    const next = this.#options.sessions.part(id, this.#options.sessions.nextPartNumber(id));
    if (next === null) return;
    const appending = this.#lock.run(id, () => this.#appendWaiting(id)).catch(() => {}); // complete tries again, and tells
    this.#background.add(appending);
    void appending.finally(() => this.#background.delete(appending));
  }

  /** Moves the parts whose turn has come into the session's file. Runs under the session's lock. */
  async #appendWaiting(id: string): Promise<void> {
    const { sessions, blobDir } = this.#options;
    for (;;) {
      if (this.#closing) throw new Error('the sandbox is stopping');
      const session = sessions.find(id);
      const part = sessions.part(id, sessions.nextPartNumber(id));
      if (!session || !part?.blob) return;
      const sink = await appendPart(join(blobDir, session.blob), session.appendedBytes);
      const waiting = createReadStream(join(blobDir, part.blob), { highWaterMark: copyBytes });
      try {
        const size = await drainInto(sink, waiting);
        if (size !== part.size) throw new Error(`part ${part.partNumber} is not as it was acknowledged`);
      } catch (error) {
        waiting.destroy();
        await sink.undo();
        throw error;
      }
      sessions.commitAppended(id, part);
      await rm(join(blobDir, part.blob), { force: true });
    }
  }

  /** Waits until nothing works in the background. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all(this.#background);
  }

  /** Size of all parts. Throws where there is none, or a gap between them. */
  #requireWhole(session: UploadSession): number {
    const parts = this.#options.sessions.parts(session.id);
    if (parts.length === 0) throw new SandboxError('upload_incomplete', { message: 'Upload has no chunk' });
    const gap = parts.findIndex((part, i) => part.partNumber !== i + limits.firstPartNumber);
    if (gap >= 0)
      throw new SandboxError('upload_incomplete', { message: `Chunk ${gap + limits.firstPartNumber} is missing` });
    return parts.reduce((sum, part) => sum + part.size, 0);
  }

  /** Writes the content of a chunk to a temporary file, and deletes the file when `take` has ended. For a form that sends the file before its fields. */
  async #spooled<Result>(
    content: Readable,
    rules: UploadRules,
    take: (open: () => Readable) => Promise<Result>,
  ): Promise<Result> {
    const { blobDir, freeBytes } = this.#options;
    const path = join(blobDir, newId('spool'));
    await requireRoom(blobDir, rules, freeBytes);
    const sink = await appendPart(path, 0);
    const spooled: Readable[] = [];
    try {
      await drainInto(sink, content);
      return await take(() => {
        const opened = createReadStream(path, { highWaterMark: copyBytes });
        spooled.push(opened);
        return opened;
      });
    } finally {
      spooled.forEach((opened) => opened.destroy());
      await sink.undo();
      await rm(path, { force: true });
    }
  }

  /**
   * Brings every part into the session's file and checks it against what was acknowledged. Where that
   * fails the upload has failed, and is cleaned up as spec 4.4 says; a full disk keeps what is stored.
   */
  async #assemble(session: UploadSession, { rules, failsInWork }: UploadAccess): Promise<UploadSession> {
    try {
      await this.#appendWaiting(session.id);
      if (failsInWork) throw new Error('an armed fault failed the completion');
      const whole = this.#options.sessions.find(session.id);
      // A reset has deleted the session and its bytes.
      if (!whole) throw sessionNotFound();
      await requireBytes(join(this.#options.blobDir, whole.blob), whole.appendedBytes);
      return whole;
    } catch (cause) {
      const error = asStorageError(cause, rules);
      if (error === cause && !this.#closing) await this.#discard(session);
      throw error;
    }
  }

  async #discard(session: UploadSession): Promise<void> {
    const { sessions, blobDir } = this.#options;
    const waiting = sessions.parts(session.id).flatMap(({ blob }) => blob ?? []);
    if (!sessions.discard(session.id)) return;
    for (const blob of [session.blob, ...waiting]) await rm(join(blobDir, blob), { force: true });
  }
}

function sizeMismatch(claimed: number, received: number): SandboxError {
  return new SandboxError('size_mismatch', { message: `fileSize is ${claimed}, received were ${received} bytes` });
}

/** The file must hold the acknowledged bytes; what a crash left of a broken chunk behind them is cut off. */
async function requireBytes(path: string, acknowledged: number): Promise<void> {
  const { size } = await stat(path);
  if (size < acknowledged) throw new Error(`${size} of ${acknowledged} bytes are left of the upload`);
  if (size === acknowledged) return;
  await truncate(path, acknowledged);
}

function newFile(
  { launchId, fileName, appendedBytes, blob }: UploadSession,
  userId: string,
  request: CompleteUploadRequest,
): NewFile {
  return {
    userId,
    launchId,
    fileName,
    sizeBytes: appendedBytes,
    blob,
    sourceType: request.sourceType,
    properties: request,
  };
}

/** Reads a chunk to its end without keeping it. Throws 400 for an invalid form or an empty file. */
async function requireGoodChunk(content: Readable, end: () => Promise<unknown>): Promise<void> {
  let size = 0;
  // A stream without an encoding gives buffers.
  for await (const bytes of content) size += (bytes as Buffer).length;
  await end();
  if (size === 0) throw empty();
}
