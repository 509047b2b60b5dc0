import { iso } from '../../../sandbox/clock.ts';
import {
  isOk,
  isUpload,
  type CallDetail,
  type TracedCall as JudgedCall,
} from '../../../sandbox/referee/traced-call.ts';
import type { TracedCall } from '../watched-launch.ts';
import type { ObservedCall } from './observed-call.ts';

/** Calls of one launch: of its token, and of those that renewals answered. */
export interface ObservedLaunch {
  /** Oldest first, with the details that the rules need. */
  readonly calls: readonly (JudgedCall & { readonly observed: ObservedCall })[];
  /** False if the launch has an operation or an upload whose beginning was not seen. */
  readonly isWhole: boolean;
}

type Judged = ObservedLaunch['calls'][number];

/** Groups calls by launch. Calls without a token belong to none. */
export function launchesOf(observed: readonly ObservedCall[]): ObservedLaunch[] {
  const calls = observed.toSorted((a, b) => a.at - b.at);
  const tokens = new TokenChains(calls);
  const byLaunch = Map.groupBy(
    calls.filter(({ token }) => token !== null),
    ({ token }) => tokens.firstOf(token ?? ''),
  );
  const owners = new Owners();
  for (const [launch, own] of byLaunch) for (const call of own) owners.add(launch, call);
  return [...byLaunch].map(([launch, own]) => {
    const told = new ToldStatuses(own);
    const judged = own.map((call, i): Judged => ({
      ...{ id: i + 1, at: call.at, endedAt: call.endedAt, endpoint: call.endpoint },
      ...{ status: call.status, delivered: call.delivered, observed: call },
      detail: { ...detailOf(launch, call, owners, told), tokenNumber: tokens.numberOf(call.token ?? '') },
    }));
    return { calls: judged, isWhole: isWhole(judged) };
  });
}

/** Tokens in the order in which renewals answered them. */
class TokenChains {
  #before = new Map<string, string>();

  constructor(calls: readonly ObservedCall[]) {
    for (const { token, nextToken } of calls)
      if (token !== null && nextToken !== null && !this.#chain(token).includes(nextToken))
        this.#before.set(nextToken, token);
  }

  /** A token and those before it, the newest first. */
  #chain(token: string): string[] {
    const chain = [token];
    for (let before = this.#before.get(token); before !== undefined; before = this.#before.get(before))
      chain.push(before);
    return chain;
  }

  firstOf(token: string): string {
    return this.#chain(token).at(-1) ?? token;
  }

  numberOf(token: string): number {
    return this.#chain(token).length;
  }
}

/** Launches by the operations and uploads that were begun in them. */
class Owners {
  readonly operations = new Map<string, string>();
  readonly uploads = new Map<string, string>();
  readonly keys = new Map<string, string>();
  /** Operation of an upload, by its id and by its key. */
  readonly operationOf = new Map<string, string>();

  add(launch: string, call: ObservedCall): void {
    const { operationId, uploadId, key } = call.detail;
    if (!isOk(asJudged(call))) return;
    if (call.name === 'createOperation' && operationId !== undefined) this.operations.set(operationId, launch);
    if (call.name !== 'initiateUpload' || uploadId === undefined || key === undefined) return;
    this.uploads.set(uploadId, launch);
    this.keys.set(key, launch);
    if (operationId === undefined) return;
    this.operationOf.set(`id ${uploadId}`, operationId);
    this.operationOf.set(`key ${key}`, operationId);
  }

  /** An object of another launch that a call names; undefined if it names none. */
  foreignIn(launch: string, { operationId, uploadId, key }: ObservedCall['detail']): CallDetail['foreign'] {
    const isOfAnother = (owner: string | undefined) => owner !== undefined && owner !== launch;
    if (isOfAnother(this.operations.get(operationId ?? ''))) return 'operation';
    if (isOfAnother(this.uploads.get(uploadId ?? ''))) return 'upload';
    return isOfAnother(this.keys.get(key ?? '')) ? 'key' : undefined;
  }
}

const asJudged = (call: ObservedCall): JudgedCall => ({ ...call, id: 0 });

/** Statuses of operations as answers told them. */
class ToldStatuses {
  #told: ObservedCall[];
  /** The only operation of the launch; undefined if it has none, or several. */
  readonly onlyOperation: string | undefined;

  constructor(calls: readonly ObservedCall[]) {
    this.#told = calls
      .filter((call) => call.detail.operationStatus !== undefined && isOk(asJudged(call)))
      .toSorted((a, b) => b.endedAt - a.endedAt);
    const ids = new Set(calls.flatMap(({ detail }) => detail.operationId ?? []));
    this.onlyOperation = ids.size === 1 ? [...ids][0] : undefined;
  }

  /** The last status that was told before a time; undefined if none was. */
  at(operationId: string, atMs: number) {
    return this.#told.find(({ endedAt, detail }) => endedAt <= atMs && detail.operationId === operationId)?.detail
      .operationStatus;
  }
}

function detailOf(launch: string, call: ObservedCall, owners: Owners, told: ToldStatuses): CallDetail {
  const foreign = owners.foreignIn(launch, call.detail);
  const { operationId: named, ...detail } = call.detail;
  if (foreign !== undefined) return { ...detail, foreign };
  const ofUpload =
    owners.operationOf.get(`id ${detail.uploadId}`) ??
    owners.operationOf.get(`key ${detail.key}`) ??
    told.onlyOperation;
  const operationId = named ?? (call.endpoint.startsWith('upload.') ? ofUpload : undefined);
  if (operationId === undefined) return detail;
  const operationStatus = detail.operationStatus ?? told.at(operationId, call.at);
  return { ...detail, operationId, ...(operationStatus !== undefined && { operationStatus }) };
}

function isWhole(calls: readonly Judged[]): boolean {
  const [created, begun] = [new Set<string>(), new Set<string>()];
  for (const { observed } of calls) {
    const { operationId, uploadId } = observed.detail;
    if (observed.name === 'createOperation' && operationId !== undefined) created.add(operationId);
    if (observed.name === 'initiateUpload' && uploadId !== undefined) begun.add(uploadId);
  }
  return calls.every((call) => {
    const { operationId, uploadId } = call.observed.detail;
    // A platform knows what it answers with success.
    if (!isOk(call)) return true;
    if (operationId !== undefined && !created.has(operationId)) return false;
    return !isUpload(call) || uploadId === undefined || begun.has(uploadId);
  });
}

/** A call as a report has it. Bodies and headers are not kept: they may hold personal data of real users. */
export function viewOf({ observed, id, detail }: Judged): TracedCall {
  const empty = { headers: {}, body: null };
  return {
    id,
    at: iso(observed.at),
    launchAt: iso(observed.at),
    endpoint: observed.endpoint,
    method: observed.method,
    path: observed.path,
    status: observed.status,
    durationMs: Math.round((observed.endedAt - observed.at) * 10) / 10,
    delivered: observed.delivered,
    requestBytes: observed.requestBytes,
    responseBytes: observed.responseBytes,
    detail: { ...(observed.endpoint.startsWith('upload.') && { operationId: null }), ...detail },
    request: empty,
    response: empty,
  };
}
