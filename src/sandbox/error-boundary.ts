import { STATUS_CODES } from 'node:http';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { Logger } from 'pino';
import { limits, type ErrorBody } from '../contract/index.ts';
import { isDiskFullError } from './machine-error.ts';
import { externalAppRules, fileRules, noRoom } from './uploads/upload-rules.ts';
import { contextOf } from './web/call-context.ts';
import { notUtf8, SandboxError } from './web/sandbox-error.ts';
import { codeOf } from '../files/index.ts';

/** The calls that answer a full disk with 507; of the others spec 7 says 500. */
const saysDiskFull = /^\/(public\/file|sandbox)\//;

/** Every path that no router knows. */
export const pathNotFound: RequestHandler = () => {
  throw new SandboxError('path_not_found');
};

/** The last handler of a known path: the method is not one of `allowed`. */
export function methodNotAllowed(...allowed: readonly string[]): RequestHandler {
  return (_req, res) => {
    res.set('Allow', allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', '));
    throw new SandboxError('method_not_allowed');
  };
}

/** The spec's message for whatever fails on the server's side in the call that follows (spec 7). */
export function failsWith(message: string): RequestHandler {
  return (_req, res, next) => {
    contextOf(res).failureMessage = message;
    next();
  };
}

/** The one place where errors become answers: 4xx are shown, everything else is logged and hidden behind the spec's message. */
export function errorBoundary(log: Logger): ErrorRequestHandler {
  return (error: unknown, req, res, next) => {
    if (req.socket.destroyed) return; // nobody is there to be told
    if (res.headersSent) return next(error);
    const known = isDiskFullError(error)
      ? noRoom(saysDiskFull.test(req.originalUrl) ? fileRules : externalAppRules, error)
      : asSandboxError(error);
    const call = contextOf(res);
    const isInjected = call.notes.detail['fault'] !== undefined;
    // 503 is a bound that was kept to.
    if (known.status >= 500)
      log[isInjected ? 'debug' : known.status === 503 ? 'warn' : 'error'](
        { err: error, requestId: call.requestId },
        'request failed',
      );
    call.errorCode = known.code;
    const failure = known.status >= 500 ? call.failureMessage : undefined;
    const body: ErrorBody = {
      error: failure ?? known.message,
      code: known.code,
      requestId: call.requestId,
      ...known.data,
    };
    if (known.details) body.details = [...known.details];
    // A route may have begun to describe another answer.
    res.removeHeader('Content-Disposition');
    res.status(known.status).type('json').json(body);
  };
}

/** Another process holds the lock of the database's file. */
const isBusyDatabase = (error: unknown) => /^SQLITE_BUSY/.test(codeOf(error) ?? '');

/** body-parser and the router name the client's faults by `status` and `type`. */
function asSandboxError(error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  if (isBusyDatabase(error))
    return new SandboxError('busy', { message: 'Another process uses the database; try again', cause: error });
  const { status, type }: { status?: unknown; type?: unknown } = error ?? {};
  // The router sets the status. Any other URIError is a defect of the sandbox.
  if (error instanceof URIError && status === 400)
    return new SandboxError('validation_failed', {
      details: [{ path: '', message: 'the path is not percent-encoded UTF-8' }],
    });
  if (type === 'entity.parse.failed')
    return new SandboxError('malformed_json', { details: [{ path: '', message: 'is not JSON' }] });
  if (type === 'entity.too.large')
    return new SandboxError('body_too_large', {
      details: [{ path: '', message: `must have at most ${limits.jsonBodyBytes} bytes` }],
    });
  if (type === notUtf8) return new SandboxError('malformed_form', { details: [{ path: '', message: 'is not UTF-8' }] });
  if (type === 'parameters.too.many')
    return new SandboxError('malformed_form', {
      details: [{ path: '', message: `must have at most ${limits.formFields} fields` }],
    });
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new SandboxError(status === 415 ? 'unsupported_media_type' : 'validation_failed', {
      status,
      message: STATUS_CODES[status] ?? 'Bad Request',
      ...(status === 400 && { details: [{ path: '', message: brokenBodies[String(type)] ?? brokenEncoding(error) }] }),
    });
  }
  return new SandboxError('internal_error', { cause: error });
}

const brokenEncoding = (error: unknown) =>
  /^Z_/.test(codeOf(error) ?? '') ? 'is not in its Content-Encoding' : 'cannot be read';

/** Messages for the faults of a body, by the type that the body parser gives them. */
const brokenBodies: Readonly<Record<string, string>> = {
  'request.aborted': 'ended before its Content-Length',
  'request.size.invalid': 'has another length than its Content-Length',
  'encoding.unsupported': 'has a Content-Encoding that is not supported',
};
