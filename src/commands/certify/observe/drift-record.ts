import type { WireCallName } from '../../../contract/index.ts';
import { probeOf } from '../../../drift/attribution.ts';
import { probes } from '../../../drift/probes.ts';
import type { Observations } from '../../../drift/compare.ts';
import type { Exchange, Level } from '../../../drift/target.ts';
import type { ObservedCall } from './observed-call.ts';

/** The exchange of drift that a successful call of an app is. */
const exchangeOf: Readonly<Partial<Record<WireCallName, string>>> = {
  userDetail: 'user-detail/of the launch',
  createOperation: 'create-operation/created',
  renewToken: 'renew-token/renewed',
  initiateUpload: 'initiate-upload/begun',
  uploadChunk: 'upload-chunk/first',
  completeUpload: 'complete-upload/completed',
  getCollection: 'collection/one',
  getItem: 'get-item/by id',
  searchItems: 'search-pages/first',
  listModels: 'list-models/all',
  runInference: 'run-inference/started',
  getInferenceStatus: 'run-inference/status',
  getFileStatus: 'delivered-file/status',
  getDownloadUrl: 'delivered-file/link',
  generateUploadId: 'file-upload/begun',
  uploadFileChunk: 'file-upload/chunk',
  completeFileUpload: 'file-upload/completed',
};

/** Statuses of operations by the exchange that shows them. Others are a person's decision. */
const byStatus: Readonly<Record<string, string>> = {
  REQUESTED: 'get-operation/requested',
  APPROVED: 'approval/approved',
};

const nameOf = ({ name, detail: { operationStatus } }: ObservedCall) =>
  name === 'getOperation' ? byStatus[operationStatus ?? ''] : exchangeOf[name];

const isSuccess = ({ status }: ObservedCall) => status !== null && status >= 200 && status <= 299;

/** What drift can compare of the calls that passed: the first successful answer of each call, by its form alone. */
export function driftRecordOf(calls: readonly ObservedCall[]): Observations & { readonly level: Level } {
  const named = calls.flatMap((call) => {
    const name = nameOf(call);
    return name === undefined || call.facts === null || !isSuccess(call) ? [] : [{ name, call, facts: call.facts }];
  });
  const first = [...new Map(named.toReversed().map((exchange) => [exchange.name, exchange])).values()].toReversed();
  const exchanges = first.map(({ name, call, facts }): Exchange => ({
    ...{ name, call: call.name, method: call.method, path: call.path, facts, unreadable: call.unreadable },
    ...{ requestBody: null, responseBody: '', isOfApp: true },
  }));
  const seen = new Set(exchanges.map(({ name }) => probeOf(name)));
  const missing = Object.fromEntries(
    probes.flatMap(({ id }) => (seen.has(id) ? [] : [[id, 'the referee saw no such call']])),
  );
  const has = (name: WireCallName) => calls.some((call) => call.name === name);
  const level = has('initiateUpload') ? 'write' : has('userDetail') || has('createOperation') ? 'launch' : 'read';
  return { level, exchanges, missing };
}
