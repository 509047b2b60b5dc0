import type { RequestHandler } from 'express';
import { placeOf } from '../platform-endpoints.ts';
import { applyFault, type Faults } from './faults.ts';
import type { RateLimit } from './rate-limit.ts';

/** Rate limit and armed faults of the calls outside of the external-app group. */
export function faultsOfGroups(faults: Faults, rateLimit: RateLimit): RequestHandler {
  return async (req, res, next) => {
    const endpoint = placeOf(req.method, req.path)?.endpoint;
    if (endpoint === undefined) return next();
    if (await applyFault(rateLimit.take(endpoint) ?? faults.take(endpoint, null), endpoint, req, res)) next();
  };
}
