import type { OperationStatus, Endpoint } from '../../contract/index.ts';

/** One call of a launch, as it came in and as it was answered. Times are real: epoch milliseconds of the machine. */
export interface TracedCall {
  readonly id: number;
  /** When its head was read. */
  readonly at: number;
  /** When its answer was handed over, or the connection ended. */
  readonly endedAt: number;
  readonly endpoint: Endpoint;
  /** Null where no answer was made. */
  readonly status: number | null;
  /** False where the answer was lost, or the connection cut. */
  readonly delivered: boolean;
  readonly detail: CallDetail;
}

/** Details that the sandbox read from a call. A field is present if the sandbox read the call that far. */
export interface CallDetail {
  /** Code of the error that it was answered with. */
  readonly code?: string;
  readonly operationId?: string;
  /** Status of that operation when the call came in. */
  readonly operationStatus?: OperationStatus;
  readonly uploadId?: string;
  readonly key?: string;
  readonly partNumber?: number;
  /** Bytes of a part, where it was read whole. */
  readonly size?: number;
  /** File size according to the complete call. */
  readonly fileSize?: number;
  readonly fileId?: string;
  /** 1 for the launch's first token, one more for each successor. */
  readonly tokenNumber?: number;
  /** Object of another launch that the call names. */
  readonly foreign?: 'operation' | 'upload' | 'key';
  /** Effect of an armed fault that fired. */
  readonly fault?: unknown;
  /** Item that a `stac.data` call fetches; `operationId` is then the operation that names it. */
  readonly itemId?: string;
  /** Total event-loop delay of the sandbox in the ten seconds before a status call. Left out below 50 ms. */
  readonly lateMs?: number;
  /** Delay before the sandbox handled a status call. Left out below 50 ms. */
  readonly heldMs?: number;
  /** Time that the sandbox was not running, for status calls in the ten seconds after its start. */
  readonly awayMs?: number;
  /** Wait that the response's Retry-After requested. */
  readonly retryAfterSeconds?: number;
}

export const inOrder = (a: TracedCall, b: TracedCall): number => a.at - b.at || a.id - b.id;

type OfEndpoint = Pick<TracedCall, 'endpoint'>;

export const isCreate = ({ endpoint }: OfEndpoint): boolean => endpoint === 'operation.create';

export const isInitiate = ({ endpoint }: OfEndpoint): boolean => endpoint === 'upload.initiate';

export const isComplete = ({ endpoint }: OfEndpoint): boolean => endpoint === 'upload.complete';

export const isUpload = ({ endpoint }: OfEndpoint): boolean => endpoint.startsWith('upload.');

/** Answered as asked, and the answer went out. */
export const isOk = ({ delivered, status }: Pick<TracedCall, 'delivered' | 'status'>): boolean =>
  delivered && status !== null && status >= 200 && status < 300;

/** True for a poll whose answer said that the operation still waits. */
export const isIdlePoll = (call: {
  readonly endpoint: string;
  readonly status: number | null;
  readonly delivered: boolean;
  readonly detail: { readonly operationStatus?: unknown; readonly fault?: unknown };
}): boolean =>
  call.endpoint === 'operation.status' &&
  isOk(call) &&
  call.detail.operationStatus === 'REQUESTED' &&
  call.detail.fault === undefined;

export const isRefused = (status: OperationStatus | undefined): boolean =>
  status === 'REJECTED' || status === 'EXPIRED';

/** Did `call` come in when the answer to `earlier` was out already? In whole milliseconds, as `at` is. */
export const cameAfter = (call: TracedCall, earlier: TracedCall): boolean => call.at >= Math.floor(earlier.endedAt);

/** Status calls that told a decision: delivered APPROVED, REJECTED or EXPIRED. */
export function decisionsIn(calls: readonly TracedCall[]): TracedCall[] {
  return calls.filter(
    (call) =>
      call.endpoint === 'operation.status' &&
      isOk(call) &&
      call.detail.operationStatus !== undefined &&
      call.detail.operationStatus !== 'REQUESTED',
  );
}

/** After this delay, the client may have given up the call. */
const abandonedAfterMs = 200;

/** False if the client may have given up the call before the answer. */
export const isSurelyTold = ({ detail }: TracedCall): boolean => (detail.heldMs ?? 0) < abandonedAfterMs;

/** Returns the first decision of each operation. */
export function firstOfEach(decisions: readonly TracedCall[]): Map<string, TracedCall> {
  const first = new Map<string, TracedCall>();
  for (const call of decisions) {
    const id = call.detail.operationId ?? '';
    if (!first.has(id)) first.set(id, call);
  }
  return first;
}

/** Status calls by operation, those of another launch's left out: `token-scope` judges them. */
export function pollsByOperation(calls: readonly TracedCall[]): Map<string, TracedCall[]> {
  const polls = calls.filter(
    ({ endpoint, detail }) =>
      endpoint === 'operation.status' && detail.operationId !== undefined && detail.foreign === undefined,
  );
  return Map.groupBy(polls, ({ detail }) => detail.operationId ?? '');
}
