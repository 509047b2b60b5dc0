import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';

const sane = /^[A-Za-z0-9._-]{1,128}$/;

/** Echoes a sane `X-Request-Id`, else makes one; on every response. */
export const requestId: RequestHandler = (req, res, next) => {
  const given = req.get('x-request-id');
  const id = given !== undefined && sane.test(given) ? given : randomUUID();
  res.locals['requestId'] = id;
  res.set('X-Request-Id', id);
  next();
};

export function requestIdOf(res: Response): string {
  return String(res.locals['requestId']);
}
