import { open } from 'node:fs/promises';
import {
  KitError,
  type CompletedUpload,
  type CompleteUploadRequest,
  type Content,
  type SourceType,
  type WireLimits,
} from '../../contract/index.ts';
import { identityOf, isSameFile, type FileIdentity } from '../../files/index.ts';
import { PlatformError, type LaunchCalls } from '../../platform-client/index.ts';

/** Progress of an upload. It is enough to continue after a restart. */
export interface UploadProgress {
  readonly uploadId: string;
  readonly key: string;
  readonly partSizeBytes: number;
  /** Parts 1 to this have been acknowledged. */
  readonly acknowledgedParts: number;
}

/** Optional fields of a completion (spec 4.4). */
export type CompletionFacts = Pick<CompleteUploadRequest, 'acquisitionDate' | 'geometry' | 'layerProperties'>;

export interface UploadTask {
  readonly operationId: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** Identity of the file whose size and digest were measured. The upload of another file fails with `output_changed`. Without it, nothing is compared. */
  readonly identity?: FileIdentity;
  readonly fileName: string;
  readonly sourceType: SourceType;
  /** Optional fields of the completion. If the platform refuses them, the completion is sent once more without them. Default: none. */
  readonly facts?: CompletionFacts;
  /** Progress of an earlier process with the same bytes. Null for a new upload. */
  readonly resume: UploadProgress | null;
}

export interface UploadOptions {
  readonly calls: Pick<LaunchCalls, 'initiateUpload' | 'uploadChunk' | 'completeUpload'>;
  /** Wanted size of a part; larger where the file would need more parts than the platform takes. */
  readonly partSizeBytes: number;
  readonly limits: PartLimits;
  /** Called before progress is relied on. */
  readonly save: (progress: UploadProgress) => Promise<void>;
  readonly onProgress: (sentBytes: number) => void;
  readonly signal: AbortSignal;
  /** Called if the platform refused the optional fields, and accepted the completion without them. */
  readonly onFactsRefused?: (error: unknown) => void;
}
type CompletionOptions = Pick<UploadOptions, 'calls' | 'signal' | 'onFactsRefused'>;

/** Limits of the platform for one upload. */
export type PartLimits = Pick<WireLimits, 'chunkBytes' | 'maxPartNumber'>;

export class UploadError extends KitError {}

/** New upload sessions after the first, where the platform has lost one. */
const maxNewSessions = 3;
const readBytes = 256 * 1024;

/**
 * Uploads one file by initiate, ordered chunks, complete (spec 4.8, rule 3): the same uploadId and key
 * throughout, memory bounded whatever the size, from the first part that was not acknowledged. Where the
 * platform has lost the session, or has other bytes in it, a new one is begun.
 */
export async function uploadFile(task: UploadTask, options: UploadOptions): Promise<CompletedUpload> {
  if (task.sizeBytes === 0)
    throw new UploadError('empty_output', 'the output is empty, and a chunk must hold at least one byte');
  let { resume } = task;
  let { partSizeBytes } = options;
  for (let session = 0; ;) {
    const progress = resume ?? (await beginUpload(task, { ...options, partSizeBytes }));
    try {
      return await sendAll(task, progress, options);
    } catch (error) {
      const halved = Math.floor(progress.partSizeBytes / 2);
      const isSmaller = isPartTooLarge(error) && choosePartSize(task.sizeBytes, halved, options.limits) === halved;
      if (isSmaller && halved >= leastPartBytes) partSizeBytes = halved;
      else if (!needsNewSession(error) || ++session > maxNewSessions) throw error;
      resume = null;
    }
  }
}

/** Smaller parts would take more calls than they save. */
const leastPartBytes = 64 * 1024;

/** Something before the platform, or the platform itself, accepts only smaller bodies. */
const isPartTooLarge = (error: unknown): boolean =>
  error instanceof PlatformError &&
  ['upload.chunk', 'file.chunk'].includes(error.endpoint) &&
  (error.platformStatus === 413 || error.code === 'chunk_too_large');

async function beginUpload(task: UploadTask, options: UploadOptions): Promise<UploadProgress> {
  const { operationId, fileName, sourceType } = task;
  const { uploadId, key } = await options.calls.initiateUpload({ operationId, fileName, sourceType }, options);
  const progress = {
    uploadId,
    key,
    partSizeBytes: choosePartSize(task.sizeBytes, options.partSizeBytes, options.limits),
    acknowledgedParts: 0,
  };
  await options.save(progress);
  return progress;
}

async function sendAll(task: UploadTask, begun: UploadProgress, options: UploadOptions): Promise<CompletedUpload> {
  let progress = begun;
  const { uploadId, key, partSizeBytes } = progress;
  const parts = Math.ceil(task.sizeBytes / partSizeBytes);
  let corrections = 0;
  while (progress.acknowledgedParts < parts) {
    const partNumber = progress.acknowledgedParts + 1;
    const startByte = (partNumber - 1) * partSizeBytes;
    const content = filePart(task, startByte, Math.min(partSizeBytes, task.sizeBytes - startByte), (bytes) =>
      options.onProgress(startByte + bytes),
    );
    let acknowledgedParts = partNumber;
    try {
      await options.calls.uploadChunk({ uploadId, key, partNumber, partCount: parts, content }, options);
    } catch (error) {
      // The platform knows better which part is next: an acknowledgement was lost, or a part.
      const expected =
        error instanceof PlatformError && error.code === 'chunk_out_of_order' ? error.expectedPart : null;
      if (expected === null || expected < 1 || expected > parts + 1 || ++corrections > parts) throw error;
      acknowledgedParts = expected - 1;
    }
    progress = { ...progress, acknowledgedParts };
    await options.save(progress);
    options.onProgress(Math.min(task.sizeBytes, acknowledgedParts * partSizeBytes));
  }
  return complete(task, progress, options);
}

async function complete(
  { sizeBytes: fileSize, sourceType, facts = {} }: Pick<UploadTask, 'sizeBytes' | 'sourceType' | 'facts'>,
  { uploadId, key, partSizeBytes }: UploadProgress,
  options: CompletionOptions,
): Promise<CompletedUpload> {
  const completion = { uploadId, key, fileSize, sourceType, partCount: Math.ceil(fileSize / partSizeBytes) };
  const send = (body: CompleteUploadRequest) => options.calls.completeUpload(body, options);
  if (Object.keys(facts).length === 0) return send(completion);
  try {
    return await send({ ...completion, ...facts });
  } catch (error) {
    if (!isRefusedBody(error)) throw error;
    const completed = await sendWithout(facts, error);
    options.onFactsRefused?.(error);
    return completed;
  }

  /** Leaves out the fields that the refusal names, or all of them. */
  async function sendWithout(known: CompletionFacts, refusal: PlatformError): Promise<CompletedUpload> {
    const isNamed = (field: string) => refusal.details.some(({ path }) => path.split('.')[0] === field);
    const kept = Object.fromEntries(Object.entries(known).filter(([field]) => !isNamed(field)));
    const count = Object.keys(kept).length;
    if (count === 0 || count === Object.keys(known).length) return send(completion);
    return send({ ...completion, ...kept }).catch((error: unknown) => {
      if (isRefusedBody(error)) return send(completion);
      throw error;
    });
  }
}

/** True if the platform rejects the body. A new upload session would not help. */
const isRefusedBody = (error: unknown): error is PlatformError =>
  error instanceof PlatformError &&
  (error.platformStatus === 400 || error.platformStatus === 422) &&
  !needsNewSession(error);

/**
 * Completes an upload whose parts the platform all has, without the file. Null if parts are missing, or if the
 * platform has lost it. The process that began it may have completed it before it died: another upload would make a second file.
 */
export async function completeWithoutFile(
  task: Pick<UploadTask, 'sizeBytes' | 'sourceType' | 'facts' | 'resume'>,
  options: CompletionOptions,
): Promise<CompletedUpload | null> {
  const { resume, sizeBytes } = task;
  if (resume === null || resume.acknowledgedParts < Math.ceil(sizeBytes / resume.partSizeBytes)) return null;
  try {
    return await complete(task, resume, options);
  } catch (error) {
    if (needsNewSession(error)) return null;
    throw error;
  }
}

/** Calls of an upload session. Their 404 means that the session is gone, even without a code (spec 4.4, 4.8). */
const ofSession: readonly string[] = ['upload.chunk', 'upload.complete', 'file.chunk', 'file.complete'];

/** The session is gone, closed, or holds other bytes than ours: nothing but a new one helps. */
function needsNewSession(error: unknown): boolean {
  const codes = [
    'upload_session_not_found',
    'chunk_conflict',
    'upload_completed',
    'upload_incomplete',
    'size_mismatch',
    'chunk_out_of_order',
  ];
  if (!(error instanceof PlatformError)) return false;
  const isUnnamed404 = error.platformStatus === 404 && error.code === 'unknown_error';
  return codes.includes(error.code) || (isUnnamed404 && ofSession.includes(error.endpoint));
}

const mebibyte = 1024 * 1024;

/** `wanted`, or as much more (in whole MiB) as keeps the file within the platform's number of parts. */
export function choosePartSize(sizeBytes: number, wanted: number, limits: PartLimits): number {
  const least = Math.ceil(sizeBytes / limits.maxPartNumber);
  const size = least <= wanted ? wanted : Math.ceil(least / mebibyte) * mebibyte;
  if (size > limits.chunkBytes) {
    const maximum = limits.maxPartNumber * limits.chunkBytes;
    throw new UploadError(
      'output_too_large',
      `the output has ${sizeBytes} bytes; the platform takes at most ${maximum}`,
    );
  }
  return size;
}

function filePart(
  { path, identity }: Pick<UploadTask, 'path' | 'identity'>,
  startByte: number,
  sizeBytes: number,
  onRead: (bytes: number) => void,
): Content {
  return {
    sizeBytes,
    async *open() {
      const file = await open(path);
      try {
        const isChanged = async () => identity !== undefined && !isSameFile(identityOf(await file.stat()), identity);
        if (await isChanged()) throw outputChanged();
        for (let read = 0; read < sizeBytes;) {
          const buffer = Buffer.allocUnsafeSlow(Math.min(readBytes, sizeBytes - read));
          const { bytesRead } = await file.read(buffer, 0, buffer.length, startByte + read);
          if (bytesRead === 0) throw outputChanged();
          read += bytesRead;
          // Before its last bytes go out: a part that the platform has whole counts.
          if (read >= sizeBytes && (await isChanged())) throw outputChanged();
          onRead(read);
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await file.close();
      }
    },
  };
}

const outputChanged = () =>
  new UploadError('output_changed', 'the output is no longer the file whose size and digest the app has recorded');
