import { limits } from '../../../src/contract/index.ts';
import { PlatformError, type LaunchCalls } from '../../../src/platform-client/index.ts';
import type { SimProcess, VirtualClock } from './virtual-clock.ts';
import type { SimRun } from './world.ts';

interface SimOperation {
  readonly id: string;
  /** Whose it is. */
  readonly runId: string;
  status: 'REQUESTED' | 'APPROVED' | 'REJECTED';
  readonly files: string[];
  readonly polls: { atMs: number; process: SimProcess }[];
  /** Whom a decision has reached. */
  readonly told: Set<SimProcess>;
}

interface SimUpload {
  readonly operation: SimOperation;
  parts: number;
  fileId: string | null;
}

export type SimCall = <T>(what: string, lost: () => Error, effect: () => T) => Promise<T>;

/** Between two polls of one operation, as they come in: the least interval, less what two calls may differ by on their way. */
const leastGapMs = limits.pollIntervalMs.min - 100;

/** The platform's external-app group, as far as the engine sees it, and who holds the app to its rules. */
export class SimPlatform {
  /** What the user wants of each run. */
  readonly wanted = new Map<string, SimRun>();
  #clock: VirtualClock;
  #note: (what: string) => void;
  #fault: (fault: string) => void;
  #operations = new Map<string, SimOperation>();
  #uploads = new Map<string, SimUpload>();
  #calls: { what: string; runId: string; atMs: number; process: SimProcess }[] = [];
  #ids = 0;

  #runOf: (key: string) => string;

  constructor(
    clock: VirtualClock,
    runOf: (key: string) => string,
    note: (what: string) => void,
    fault: (fault: string) => void,
  ) {
    this.#clock = clock;
    this.#runOf = runOf;
    this.#note = note;
    this.#fault = fault;
  }

  operationsOf(runId: string): SimOperation[] {
    return [...this.#operations.values()].filter((one) => one.runId === runId);
  }

  callsOf(runId: string) {
    return this.#calls.filter((one) => one.runId === runId);
  }

  isApproved(runId: string): boolean {
    return this.operationsOf(runId).some(({ status }) => status === 'APPROVED');
  }

  /** The calls of one worker; `mayCall` as the real client asks it. */
  calls(mayCall: (signal: AbortSignal | undefined) => Promise<void>, call: SimCall): LaunchCalls {
    const ask = async <T>(
      endpoint: 'operation.create' | 'operation.status' | 'upload.initiate' | 'upload.chunk' | 'upload.complete',
      signal: AbortSignal | undefined,
      effect: (process: SimProcess) => T,
    ): Promise<T> => {
      await mayCall(signal);
      // An HTTP client sends nothing for a signal that is already aborted.
      signal?.throwIfAborted();
      const process = this.#clock.process()!;
      const answer = await call(
        endpoint,
        () => new PlatformError(endpoint, 'connection_failed', 'no answer'),
        () => effect(process),
      );
      signal?.throwIfAborted();
      return answer;
    };
    const seen = (what: string, operation: SimOperation, process: SimProcess) => {
      this.#calls.push({ what, runId: operation.runId, atMs: this.#clock.nowMs, process });
      this.#note(`${process.name}: ${what} ${operation.id}`);
    };
    const operationOf = (id: string): SimOperation => {
      const operation = [...this.#operations.values()].find((one) => one.id === id);
      if (!operation)
        throw new PlatformError('operation.status', 'operation_not_found', 'there is none', { platformStatus: 404 });
      return operation;
    };
    const uploadOf = (endpoint: 'upload.chunk' | 'upload.complete', uploadId: string): SimUpload => {
      const upload = this.#uploads.get(uploadId);
      if (!upload)
        throw new PlatformError(endpoint, 'upload_session_not_found', 'there is none', { platformStatus: 404 });
      return upload;
    };
    return {
      keepAlive: async () => {},
      userDetail: async () => ({ id: 'u' }),
      createOperation: ({ idempotencyKey }, { signal } = {}) =>
        ask('operation.create', signal, (process) => {
          const operation = this.#operations.get(idempotencyKey) ?? this.#begin(idempotencyKey);
          seen('create', operation, process);
          return { operationId: operation.id };
        }),
      getOperation: async ({ operationId }, { signal } = {}) => {
        const caller = this.#clock.process()!;
        const answer = await ask('operation.status', signal, (process) => {
          const operation = operationOf(operationId);
          if (operation.told.has(process))
            this.#fault(`${operation.id} was polled by ${process.name} again, which had been told ${operation.status}`);
          const last = operation.polls.at(-1);
          const gapMs = this.#clock.nowMs - (last?.atMs ?? -Infinity);
          if (gapMs < leastGapMs)
            this.#fault(`${operation.id} was polled by ${process.name} ${gapMs} ms after ${last?.process.name}`);
          operation.polls.push({ atMs: this.#clock.nowMs, process });
          seen(`poll (${operation.status})`, operation, process);
          return { operationId, status: operation.status };
        });
        if (answer.status !== 'REQUESTED') operationOf(operationId).told.add(caller);
        return answer;
      },
      initiateUpload: ({ operationId }, { signal } = {}) =>
        ask('upload.initiate', signal, (process) => {
          const operation = operationOf(operationId);
          seen('initiate', operation, process);
          if (operation.status !== 'APPROVED')
            this.#fault(`${operation.id} is ${operation.status}, and an upload was begun`);
          const uploadId = `upload-${(this.#ids += 1)}`;
          this.#uploads.set(uploadId, { operation, parts: 0, fileId: null });
          return { uploadId, key: 'key' };
        }),
      uploadChunk: ({ uploadId, partNumber }, { signal } = {}) =>
        ask('upload.chunk', signal, (process) => {
          const upload = uploadOf('upload.chunk', uploadId);
          seen(`chunk ${partNumber}`, upload.operation, process);
          if (upload.fileId !== null && partNumber > upload.parts)
            throw new PlatformError('upload.chunk', 'upload_completed', 'it is', { platformStatus: 409 });
          if (partNumber > upload.parts + 1)
            throw new PlatformError('upload.chunk', 'chunk_out_of_order', 'another is next', {
              platformStatus: 409,
              expectedPart: upload.parts + 1,
            });
          upload.parts = Math.max(upload.parts, partNumber);
          return { partNumber };
        }),
      completeUpload: ({ uploadId }, { signal } = {}) =>
        ask('upload.complete', signal, (process) => {
          const upload = uploadOf('upload.complete', uploadId);
          seen('complete', upload.operation, process);
          if (upload.parts !== 3)
            throw new PlatformError('upload.complete', 'upload_incomplete', `${upload.parts} parts`, {
              platformStatus: 409,
            });
          if (upload.fileId === null) upload.operation.files.push((upload.fileId = `file-${(this.#ids += 1)}`));
          return { fileId: upload.fileId, size: 25 };
        }),
    };
  }

  #begin(key: string): SimOperation {
    const runId = this.#runOf(key);
    const operation: SimOperation = {
      id: `${runId} op-${(this.#ids += 1)}`,
      runId,
      status: 'REQUESTED',
      files: [],
      polls: [],
      told: new Set(),
    };
    this.#operations.set(key, operation);
    const { decision, decideAfterMs } = this.wanted.get(runId) ?? { decision: 'APPROVED', decideAfterMs: 0 };
    this.#clock.schedule(decideAfterMs, undefined, () => {
      operation.status = decision;
      this.#note(`the user decides on ${operation.id}: ${decision}`);
    });
    return operation;
  }
}
