import type { RequestHandler } from 'express';
import { RequestError } from './errors.ts';

/** Requires that every request that changes something comes from the app's own pages: no other site may act for the user. */
export const requireSameOrigin: RequestHandler = (req, _res, next) => {
  if (req.method === 'GET' || req.method === 'HEAD') return next();
  const origin = req.get('origin');
  const site = req.get('sec-fetch-site');
  const own = `${req.protocol}://${req.get('host')}`;
  if ((origin !== undefined && origin !== own) || (site !== undefined && site !== 'same-origin' && site !== 'none')) {
    throw new RequestError(403, 'foreign_origin', 'the request came from another site');
  }
  if (req.get('content-length') !== '0' && req.get('content-type') !== undefined && !req.is('application/json')) {
    throw new RequestError(415, 'unsupported_media_type', 'send application/json');
  }
  next();
};
