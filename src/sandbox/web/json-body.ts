import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import express, { type RequestHandler } from 'express';
import { limits } from '../../contract/index.ts';
import { adaptedBody } from './wire-adapter.ts';
import { wrongMediaType } from './sandbox-error.ts';

/** Returns a check that a body is UTF-8. Without it, Express replaces other bytes. `type` is the type of the error. */
export const requireUtf8 =
  (type: string) =>
  (_req: unknown, _res: unknown, body: Buffer, charset: string): void => {
    if (charset === 'utf-8' && !isUtf8(body)) throw Object.assign(new Error('the body is not UTF-8'), { type });
  };

const parse = express.json({
  limit: limits.jsonBodyBytes,
  type: 'application/json',
  strict: false,
  verify: requireUtf8('entity.parse.failed'),
});

/** Reads a JSON body. A body of another type is 415; no body at all reads as an empty object, for the schema to refuse. */
export const jsonBody: RequestHandler = (req, res, next) => {
  const spoken = adaptedBody(req);
  const read = (error?: unknown) => {
    if (!spoken || error !== undefined) return next(error);
    try {
      req.body = spoken.read(req.body);
    } catch (refusal) {
      return next(refusal);
    }
    next();
  };
  if (!hasBody(req)) {
    req.body = {};
    return read();
  }
  if (!req.is('application/json')) throw wrongMediaType(['application/json']);
  parse(req, res, read);
};

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
