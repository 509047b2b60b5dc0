import { iso } from '../../../sandbox/clock.ts';
import {
  isCreate,
  isInitiate,
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
  /** False if the launch has an operation or an upload whose beginning was not seen, or could not be read. */
  readonly isWhole: boolean;
}

type Judged = ObservedLaunch['calls'][number];

/** Groups calls by launch. Calls without a token belong to none. */
export function launchesOf(observed: readonly ObservedCall[]): ObservedLaunch[] {
  const calls = observed.toSorted((a, b) => a.at - b.at || a.endedAt - b.endedAt);
  const tokens = new TokenChains(calls);
  const byLaunch = Map.groupBy(
    calls.filter(({ token }) => token !== null),
    ({ token }) => tokens.firstOf(token ?? ''),
  );
  const owners = new Owners();
  for (const [launch, own] of byLaunch) for (const call of own) owners.add(launch, call);
  return [...byLaunch].map(([launch, own]) => {
    const told = new ToldStatuses(own);
    const judged = own.map((call, i): Judged => {
      const tokenNumber = tokens.numberOf(call.token ?? '');
      return {
        ...{ id: i + 1, at: call.at, endedAt: call.endedAt, endpoint: call.endpoint },
        ...{ status: call.status, delivered: call.delivered, observed: call },
        detail: { ...detailOf(launch, call, owners, told), ...(tokenNumber !== undefined && { tokenNumber }) },
      };
    });
    return { calls: judged, isWhole: isWhole(judged) };
  });
}

/** Tokens in the order in which renewals answered them. */
class TokenChains {
  #before = new Map<string, string>();
  /** First tokens of launches in which a token has two successors, because renewals ran in parallel: nobody knows which holds. */
  #forked = new Set<string>();

  constructor(calls: readonly ObservedCall[]) {
    const renewals = calls.flatMap(({ token, nextToken }) =>
      token !== null && nextToken !== null ? [{ token, nextToken }] : [],
    );
    for (const { token, nextToken } of renewals)
      if (!this.#chain(token).includes(nextToken)) this.#before.set(nextToken, token);
    const successors = Map.groupBy([...this.#before], ([, token]) => token);
    for (const [token, own] of successors) if (own.length > 1) this.#forked.add(this.firstOf(token));
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

  /** Undefined where the order is not known. */
  numberOf(token: string): number | undefined {
    return this.#forked.has(this.firstOf(token)) ? undefined : this.#chain(token).length;
  }
}

/** Launches that were answered an object, by the object: another launch may be answered the same. */
class OwnersOf {
  #owners = new Map<string, Set<string>>();

  add(object: string, launch: string): void {
    this.#owners.set(object, (this.#owners.get(object) ?? new Set()).add(launch));
  }

  /** True if only other launches have it. */
  isForeign(object: string | undefined, launch: string): boolean {
    const owners = this.#owners.get(object ?? '');
    return owners !== undefined && !owners.has(launch);
  }
}

/** Launches by the operations and uploads that were begun in them. */
class Owners {
  #operations = new OwnersOf();
  #uploads = new OwnersOf();
  #keys = new OwnersOf();
  /** Operation of an upload of a launch, by its id and by its key. */
  #operationOf = new Map<string, string>();

  add(launch: string, call: ObservedCall): void {
    const { operationId, uploadId, key } = call.detail;
    if (!isOk(call)) return;
    if (isCreate(call) && operationId !== undefined) this.#operations.add(operationId, launch);
    if (!isInitiate(call) || uploadId === undefined || key === undefined) return;
    this.#uploads.add(uploadId, launch);
    this.#keys.add(key, launch);
    if (operationId === undefined) return;
    this.#operationOf.set(`${launch} id ${uploadId}`, operationId);
    this.#operationOf.set(`${launch} key ${key}`, operationId);
  }

  operationOf(launch: string, { uploadId, key }: ObservedCall['detail']): string | undefined {
    return this.#operationOf.get(`${launch} id ${uploadId}`) ?? this.#operationOf.get(`${launch} key ${key}`);
  }

  /** An object that only other launches have, and that a call names; undefined if it names none. */
  foreignIn(launch: string, { operationId, uploadId, key }: ObservedCall['detail']): CallDetail['foreign'] {
    if (this.#operations.isForeign(operationId, launch)) return 'operation';
    if (this.#uploads.isForeign(uploadId, launch)) return 'upload';
    return this.#keys.isForeign(key, launch) ? 'key' : undefined;
  }
}

/** Statuses of operations as answers told them. */
class ToldStatuses {
  #told: ObservedCall[];
  /** The only operation of the launch; undefined if it has none, or several. */
  readonly onlyOperation: string | undefined;

  constructor(calls: readonly ObservedCall[]) {
    this.#told = calls
      .filter((call) => call.detail.operationStatus !== undefined && isOk(call))
      .toSorted((a, b) => b.endedAt - a.endedAt);
    const ids = new Set(calls.flatMap(({ detail }) => detail.operationId ?? []));
    this.onlyOperation = ids.size === 1 ? [...ids][0] : undefined;
  }

  /** The last status that was told before a time; undefined if none was. */
  at(operationId: string, atMs: number) {
    return this.#told.find(({ endedAt, detail }) => Math.floor(endedAt) <= atMs && detail.operationId === operationId)
      ?.detail.operationStatus;
  }
}

function detailOf(launch: string, call: ObservedCall, owners: Owners, told: ToldStatuses): CallDetail {
  const foreign = owners.foreignIn(launch, call.detail);
  const { operationId: named, ...detail } = call.detail;
  if (foreign !== undefined) return { ...detail, foreign };
  const ofUpload = owners.operationOf(launch, call.detail) ?? told.onlyOperation;
  const operationId = named ?? (call.endpoint.startsWith('upload.') ? ofUpload : undefined);
  if (operationId === undefined) return detail;
  const operationStatus = detail.operationStatus ?? told.at(operationId, call.at);
  return { ...detail, operationId, ...(operationStatus !== undefined && { operationStatus }) };
}

function isWhole(calls: readonly Judged[]): boolean {
  const [created, begun] = [new Set<string>(), new Set<string>()];
  for (const { observed } of calls) {
    const { operationId, uploadId } = observed.detail;
    if (isCreate(observed) && operationId !== undefined) created.add(operationId);
    if (isInitiate(observed) && uploadId !== undefined) begun.add(uploadId);
  }
  // Without a creation that was seen, nobody knows what the app was told before.
  const ofOperation = calls.filter(
    ({ endpoint, detail }) => isUpload({ endpoint }) || detail.operationId !== undefined,
  );
  if (ofOperation.length > 0 && created.size === 0 && !ofOperation.every(({ detail }) => detail.foreign !== undefined))
    return false;
  return calls.every((call) => {
    const { operationId, uploadId } = call.observed.detail;
    // A platform knows what it answers with success. Another launch's objects began there.
    if (!isOk(call) || call.detail.foreign !== undefined) return true;
    if (operationId !== undefined && !created.has(operationId)) return false;
    return !isUpload(call) || uploadId === undefined || begun.has(uploadId);
  });
}

/** A call as a report has it. Bodies and headers are not kept: they may hold personal data of real users. */
export function viewOf({ observed, id, detail }: Judged, isSecret: (text: string) => boolean): TracedCall {
  const shown = Object.entries<unknown>({ ...detail }).map(([name, value]): [string, unknown] => [
    name,
    typeof value === 'string' && isSecret(value) ? '[redacted]' : value,
  ]);
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
    detail: {
      ...(observed.endpoint.startsWith('upload.') && { operationId: null }),
      ...(Object.fromEntries(shown) as CallDetail),
    },
    request: empty,
    response: empty,
  };
}
