import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { RequestHandler, Response } from 'express';

/** Notes of the routes about a call, for the referee: ids, statuses and sizes, and no token or key. */
export interface CallNotes {
  readonly detail: Record<string, unknown>;
  /** True if a fault lost the answer or cut the connection. */
  isUndelivered: boolean;
  /** Status of an answer that a fault discarded. */
  lostStatus: number | null;
}

/** State that the handlers of one call share. */
export interface CallContext {
  /** The request's own `X-Request-Id` if it is well formed, else a new UUID. */
  readonly requestId: string;
  /** Kept with the call if the trace records it. */
  readonly notes: CallNotes;
  /** The interface's message for server errors of this call (section 7). Default: the error's own message. */
  failureMessage?: string;
  /** Code of the error that was answered. */
  errorCode?: string;
  /** Launch of the identity token, after authentication. */
  launchId?: string;
  /** App whose own the API key is; null for anybody's. Set where a key is required. */
  keyOfApp?: string | null;
  /** True if a verified download link asks for the file's own media type. */
  useDefaultContentType?: boolean;
  /** True if an armed fault makes the call's work fail half-way. */
  failsInWork?: boolean;
  /** Returns the part of the body that an armed fault lets through. Default: the whole body. */
  openBody?: () => Readable;
  /** Reads a JSON body as the contract has it, before `translate`. The trace sets it. */
  observe?: (body: unknown) => void;
  /** Returns a JSON body as another wire has it. The wire adapter sets it. */
  translate?: (body: unknown) => unknown;
}

const contexts = new WeakMap<Response, CallContext>();
const sane = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * The first handler: gives the call its context, and its `X-Request-Id`.
 * A JSON body passes `observe`, then `translate`. Faults then change the bytes that Express writes.
 */
export const callContext: RequestHandler = (req, res, next) => {
  const given = req.get('x-request-id');
  const requestId = given !== undefined && sane.test(given) ? given : randomUUID();
  const call: CallContext = { requestId, notes: { detail: {}, isUndelivered: false, lostStatus: null } };
  contexts.set(res, call);
  res.set('X-Request-Id', requestId);
  const json = res.json.bind(res);
  res.json = (body: unknown) => {
    call.observe?.(body);
    return json(call.translate ? call.translate(body) : body);
  };
  next();
};

/** Returns the context of a call. */
export function contextOf(res: Response): CallContext {
  const call = contexts.get(res);
  if (!call) throw new Error('callContext must be the first handler');
  return call;
}
