import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import * as z from 'zod';
import { KitError, validationDetails, type ValidationDetail } from '../../contract/index.ts';
import { PlatformError } from '../../platform-client/index.ts';
import { DatabaseUnavailableError } from '../database-unavailable.ts';
import { adviceOnPage, type AppErrorCode } from '../app-errors.ts';

/** The browser sent a malformed request. */
export class RequestError extends KitError {
  readonly details: readonly ValidationDetail[];
  constructor(status: number, code: AppErrorCode, message: string, details: readonly ValidationDetail[] = []) {
    super(code, message, { status });
    this.details = details;
  }
}

/** Parses a request's body. Throws `RequestError` with the places that are wrong. */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new RequestError(400, 'validation_failed', 'the request is not valid', validationDetails(read.error));
}

export const notFound: RequestHandler = () => {
  // The address is not repeated: it may hold a token that was put in the wrong place.
  throw new RequestError(404, 'not_found', 'There is nothing at this address.');
};

/** Time after which a request to a busy app, or to one without its database, is worth another try. */
const retryAfterSeconds = 5;

/** Facts that the page of an error shows. */
export interface ErrorView {
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  readonly advice: string | null;
}

/** The one error boundary: shows 4xx, hides and logs what is the app's own fault. JSON under `/api/`, a page elsewhere. */
export function errorBoundary(
  renderPage: (view: ErrorView) => string,
  onRefusal: (error: KitError) => void = () => {},
): ErrorRequestHandler {
  return (error: unknown, req, res, next) => {
    if (req.socket.destroyed) return; // nobody is there to be told
    if (res.headersSent) return next(error);
    const known = asKitError(error);
    onRefusal(known);
    if (known.status >= 500) req.log.error({ err: error }, 'request failed');
    const view: ErrorView = {
      code: known.code,
      message: known.message,
      requestId: typeof req.id === 'string' ? req.id : '',
      advice: adviceFor(error, known),
    };
    res.status(known.status);
    if ((known.status === 503 || known.status === 429) && !res.hasHeader('Retry-After'))
      res.set('Retry-After', String(retryAfterSeconds));
    if (/^\/(launches\/[^/]+\/api|jobs)\//.test(req.path)) return void sendJson(res, known, view.requestId);
    res.type('html').send(renderPage(view));
  };
}

/** A platform's code may be one of the app's too, with another meaning. A fork's own error may bring its advice. */
function adviceFor(error: unknown, known: KitError): string | null {
  if (error instanceof PlatformError) return null;
  const { advice } = known.data;
  return typeof advice === 'string' ? advice : adviceOnPage(known.code);
}

function sendJson(res: Response, error: KitError, requestId: string): void {
  // Classes of errors with details declare this type.
  const details = (error as { details?: readonly ValidationDetail[] }).details;
  res.json({ error: error.message, code: error.code, requestId, ...(details?.length ? { details } : {}) });
}

function asKitError(error: unknown): KitError {
  if (error instanceof PlatformError) {
    // Its message holds no token, key or address.
    return new KitError(error.code, `the app could not ask the platform: ${error.message}`, {
      status: error.platformStatus === 400 ? 400 : 502,
    });
  }
  if (error instanceof DatabaseUnavailableError)
    return new KitError(error.code, `${error.message}; nothing is lost`, {
      status: 503,
    });
  if (error instanceof KitError && (error.status < 500 || error.data['isForUser'] === true)) return error;
  const status = error instanceof Error && !(error instanceof KitError) && 'status' in error ? error.status : undefined;
  // body-parser and the router name the client's faults themselves.
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new RequestError(status, 'bad_request', 'the app could not read the request');
  return new KitError('internal_error', 'something went wrong in this app', {
    status: error instanceof KitError ? error.status : 500,
  });
}
