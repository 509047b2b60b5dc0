import { limits, type Content, type Endpoint } from '../../../src/contract/index.ts';
import { TokenKeeper } from '../../../src/platform-client/identity-token.ts';
import { PlatformError, type IdentityTokenStore, type LaunchCalls } from '../../../src/platform-client/index.ts';
import type { SimProcess, VirtualClock } from './virtual-clock.ts';
import type { SimRun } from './world.ts';

interface SimOperation {
  readonly id: string;
  readonly runId: string;
  /** The request that created it. */
  readonly body: string;
  status: 'REQUESTED' | 'APPROVED' | 'REJECTED';
  readonly files: SimFile[];
  readonly polls: { atMs: number; process: SimProcess }[];
  /** Whom a decision has reached. */
  readonly told: Set<SimProcess>;
}

interface SimFile {
  readonly id: string;
  readonly bytes: Buffer;
}

interface SimUpload {
  readonly operation: SimOperation;
  readonly parts: Buffer[];
  file: SimFile | null;
}

export type SimCall = <T>(what: string, lost: () => Error, effect: () => T) => Promise<T>;

/** Between two polls of one operation, as they come in: the least interval, less what two calls may differ by on their way. */
const leastGapMs = limits.pollIntervalMs.min - 100;
/** The first token is short, so that runs renew it, often two workers at once. A renewed one outlives every stop of a process. A renewal is accepted at any later time. */
const firstTokenMs = 20_000;
const tokenLifetimeMs = 90_000;
const firstToken = 'token-0';

async function bytesOf(content: Content): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of content.open()) parts.push(part);
  return Buffer.concat(parts);
}

const isoOf = (atMs: number) => new Date(atMs).toISOString();

/** The platform's external-app group, as far as the engine sees it, and who holds the app to its rules. */
export class SimPlatform {
  /** Wishes of the user for each run. */
  readonly wanted = new Map<string, SimRun>();
  #clock: VirtualClock;
  #note: (what: string) => void;
  #fault: (fault: string) => void;
  #operations = new Map<string, SimOperation>();
  #uploads = new Map<string, SimUpload>();
  #calls: { what: string; runId: string; atMs: number; process: SimProcess }[] = [];
  #ids = 0;
  /** The launch's token, and its successor until that is used (policy `rotate`). */
  #token: { value: string; endsAtMs: number };
  #renewedAtMs = -Infinity;
  #successor: { value: string; endsAtMs: number } | null = null;

  #runOf: (key: string) => string;

  constructor(
    clock: VirtualClock,
    runOf: (key: string) => string,
    note: (what: string) => void,
    fault: (fault: string) => void,
  ) {
    this.#clock = clock;
    this.#token = { value: firstToken, endsAtMs: clock.nowMs + firstTokenMs };
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

  /** The calls of one worker. `before` runs before each request, as in the real client. */
  calls(
    before: (signal: AbortSignal | undefined) => Promise<void>,
    call: SimCall,
    tokens: IdentityTokenStore,
  ): LaunchCalls {
    const lost = (endpoint: Endpoint) => () => new PlatformError(endpoint, 'connection_failed', 'no answer');
    const keeper = new TokenKeeper(
      tokens,
      (token) => call('token.renew', lost('token.renew'), () => this.#renew(token)),
      { now: Date.now, tokenLifetimeMs },
    );
    const ask = <T>(
      endpoint: 'operation.create' | 'operation.status' | 'upload.initiate' | 'upload.chunk' | 'upload.complete',
      signal: AbortSignal | undefined,
      effect: (process: SimProcess) => T,
    ): Promise<T> => {
      const send = async (token: string) => {
        // An HTTP client sends nothing for a signal that is already aborted.
        signal?.throwIfAborted();
        const process = this.#clock.process()!;
        const answer = await call(endpoint, lost(endpoint), () => {
          this.#authorize(endpoint, token);
          return effect(process);
        });
        signal?.throwIfAborted();
        return answer;
      };
      return keeper.use(send, { repeat: (attempt) => attempt(), before, isPatient: false, signal });
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
      keepAlive: ({ signal } = {}) => keeper.keepAlive(signal),
      userDetail: async () => ({ id: 'u' }),
      createOperation: ({ idempotencyKey, operation: wanted }, { signal } = {}) =>
        ask('operation.create', signal, (process) => {
          const body = JSON.stringify(wanted);
          const operation = this.#operations.get(idempotencyKey) ?? this.#begin(idempotencyKey, body);
          if (operation.body !== body)
            throw new PlatformError('operation.create', 'idempotency_key_reused', 'the body is another', {
              platformStatus: 400,
            });
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
          this.#uploads.set(uploadId, { operation, parts: [], file: null });
          return { uploadId, key: 'key' };
        }),
      uploadChunk: async ({ uploadId, partNumber, content }, { signal } = {}) => {
        const bytes = await bytesOf(content);
        return ask('upload.chunk', signal, (process) => {
          const { operation, parts, file } = uploadOf('upload.chunk', uploadId);
          seen(`chunk ${partNumber}`, operation, process);
          const refuse = (code: 'upload_completed' | 'chunk_out_of_order' | 'chunk_conflict') => {
            throw new PlatformError('upload.chunk', code, code, {
              platformStatus: 409,
              expectedPart: parts.length + 1,
            });
          };
          if (file && partNumber > parts.length) refuse('upload_completed');
          if (partNumber > parts.length + 1) refuse('chunk_out_of_order');
          if (!(parts[partNumber - 1] ??= bytes).equals(bytes)) refuse('chunk_conflict');
          return { partNumber };
        });
      },
      completeUpload: ({ uploadId, fileSize }, { signal } = {}) =>
        ask('upload.complete', signal, (process) => {
          const upload = uploadOf('upload.complete', uploadId);
          seen('complete', upload.operation, process);
          const bytes = Buffer.concat(upload.parts);
          if (bytes.length !== fileSize)
            throw new PlatformError('upload.complete', 'upload_incomplete', `${bytes.length} bytes`, {
              platformStatus: 409,
            });
          if (!upload.file) upload.operation.files.push((upload.file = { id: `file-${(this.#ids += 1)}`, bytes }));
          return { fileId: upload.file.id, size: bytes.length };
        }),
    };
  }

  /** The platform ends the token early, unless it has just renewed it: a second refusal ends the session. */
  endToken(): void {
    if (this.#clock.nowMs - this.#renewedAtMs > 5_000) this.#token.endsAtMs = this.#clock.nowMs;
  }

  #renew(token: string): { token: string; expiresAt: string } {
    const endsAtMs = this.#clock.nowMs + tokenLifetimeMs;
    if (token === this.#successor?.value) this.#token = this.#successor;
    else if (token !== this.#token.value)
      throw new PlatformError('token.renew', 'token_revoked', 'it is', { platformStatus: 403 });
    else if (this.#successor) return { token: this.#successor.value, expiresAt: isoOf(this.#successor.endsAtMs) };
    this.#renewedAtMs = this.#clock.nowMs;
    this.#successor = { value: `token-${(this.#ids += 1)}`, endsAtMs };
    this.#note(`${token} is renewed: ${this.#successor.value}`);
    return { token: this.#successor.value, expiresAt: isoOf(endsAtMs) };
  }

  #authorize(endpoint: Endpoint, token: string): void {
    const refuse = (code: 'token_expired' | 'token_revoked') => {
      throw new PlatformError(endpoint, code, code, { platformStatus: 403 });
    };
    if (token === this.#successor?.value) [this.#token, this.#successor] = [this.#successor, null];
    if (token !== this.#token.value) refuse('token_revoked');
    if (this.#token.endsAtMs <= this.#clock.nowMs) refuse('token_expired');
  }

  #begin(key: string, body: string): SimOperation {
    const runId = this.#runOf(key);
    const operation: SimOperation = {
      id: `${runId} op-${(this.#ids += 1)}`,
      runId,
      body,
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
