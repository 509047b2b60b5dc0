import express, { type Request, type RequestHandler } from 'express';
import { limits } from '../../contract/index.ts';
import { SandboxError } from './sandbox-error.ts';

const parse = express.json({ limit: limits.jsonBodyBytes, type: 'application/json', strict: false });

/** Reads a JSON body. A body of another type is 415; no body at all reads as an empty object, for the schema to refuse. */
export const jsonBody: RequestHandler = (req, res, next) => {
  if (!hasBody(req)) {
    req.body = {};
    return next();
  }
  if (!req.is('application/json')) throw new SandboxError(415, 'unsupported_media_type', 'Unsupported Media Type');
  parse(req, res, next);
};

export function hasBody(req: Request): boolean {
  return req.get('transfer-encoding') !== undefined || Number(req.get('content-length') ?? 0) > 0;
}
