import { STATUS_CODES } from 'node:http';
import { Transform, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { errorMessages, type ErrorCode, type Endpoint } from '../../contract/index.ts';
import { contextOf } from '../web/call-context.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { answerAfterWork, dropAnswer, mislabelAnswer, slowAnswer, truncateAnswer } from './answer-effects.ts';
import type { FaultEffect } from './fault.ts';

/** Does what a fault says before the call's work. True where the work goes on. */
export async function applyFault(
  effect: FaultEffect | null,
  endpoint: Endpoint,
  req: Request,
  res: Response,
): Promise<boolean> {
  if (effect === null) return true;
  const call = contextOf(res);
  const { notes } = call;
  notes.detail['fault'] = effect;
  if ('afterWork' in effect) {
    answerAfterWork(res, effect.status, () => ({
      error: messageOf(endpoint, effect.status),
      code: codeOf(effect.status),
      requestId: call.requestId,
    }));
    return true;
  }
  if ('status' in effect) {
    if (effect.retryAfterSeconds !== undefined) res.set('Retry-After', String(effect.retryAfterSeconds));
    throw new SandboxError(codeOf(effect.status), {
      status: effect.status,
      message: messageOf(endpoint, effect.status),
    });
  }
  if ('truncate' in effect) {
    notes.isUndelivered = true;
    truncateAnswer(res);
    return true;
  }
  if ('contentType' in effect) {
    // Clients cannot read this answer, so it does not count as delivered.
    notes.isUndelivered ||= !/[/+]json$/i.test(effect.contentType);
    mislabelAnswer(res, effect.contentType);
    return true;
  }
  if ('failWork' in effect) {
    call.failsInWork = true;
    return true;
  }
  // Otherwise the server would cut a connection on which nothing moves for five minutes.
  if ('slowBodyMs' in effect || 'delayMs' in effect) req.socket.setTimeout(0);
  if ('slowBodyMs' in effect) {
    slowAnswer(res, effect.slowBodyMs);
    return true;
  }
  if ('delayMs' in effect) {
    await sleep(effect.delayMs);
    return !req.socket.destroyed;
  }
  notes.isUndelivered = true;
  if ('dropResponse' in effect) {
    dropAnswer(res, () => {
      notes.lostStatus = res.statusCode;
      req.socket.destroy();
    });
    return true;
  }
  if (endpoint === 'upload.chunk' || endpoint === 'file.chunk') {
    call.openBody = () => req.pipe(cutInTheMiddle(req));
    return true;
  }
  req.socket.destroy();
  return false;
}

/** Returns the interface's message for a call and status, or else HTTP's reason phrase. */
const messageOf = (endpoint: Endpoint, status: number): string =>
  errorMessages[endpoint]?.[status] ?? STATUS_CODES[status] ?? 'Injected fault';

function codeOf(status: number): ErrorCode {
  if (status === 429) return 'too_many_requests';
  return status >= 500 ? 'internal_error' : 'injected_fault';
}

/** A request's body as the call's work may read it: the request, or what a fault leaves of it. Call it once, when reading begins. */
export function bodyOf(req: Request, res: Response): Readable {
  return contextOf(res).openBody?.() ?? req;
}

/** Lets half of the body through, then cuts the connection. */
function cutInTheMiddle(req: Request): Transform {
  let left = Math.floor(Number(req.get('content-length') ?? 0) / 2);
  return new Transform({
    transform(bytes: Buffer, _encoding, done) {
      const passed = bytes.subarray(0, left);
      left -= passed.length;
      if (passed.length === bytes.length) return done(null, passed);
      this.push(passed);
      req.socket.destroy();
      done(new Error('an armed fault cut the connection'));
    },
  });
}
