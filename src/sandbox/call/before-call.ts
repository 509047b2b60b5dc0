import type { RequestHandler } from 'express';
import { errorMessages, type Endpoint } from '../../contract/index.ts';
import type { AttributeCall } from '../referee/call-attribution.ts';
import type { Trace } from '../referee/trace.ts';
import { failsWith } from '../error-boundary.ts';
import { applyFault } from './apply-fault.ts';
import type { Faults } from './faults.ts';
import type { RateLimit } from './rate-limit.ts';

/** Returns the handlers that run before a call's own handler. `checks` verify the API key or the signed link, before rate limits and faults. */
export type BeforeCall = (endpoint: Endpoint, ...checks: RequestHandler[]) => RequestHandler[];

/** For calls without an identity token. Records the call, runs its checks, then applies the rate limit and armed faults. */
export function beforeCall({
  trace,
  whose,
  faults,
  rateLimit,
}: {
  readonly trace: Trace;
  readonly whose: AttributeCall;
  readonly faults: Faults;
  readonly rateLimit: RateLimit;
}): BeforeCall {
  return (endpoint, ...checks) => [
    ...serverErrorMessage(endpoint),
    (req, res, next) => {
      const known = whose(endpoint, req);
      // A catalog page requests dozens of previews. Record only those of a launch.
      if (endpoint !== 'stac.preview' || known.launchId !== null) trace.beginOfGroup(req, res, endpoint, known);
      next();
    },
    ...checks,
    async (req, res, next) => {
      if (await applyFault(rateLimit.take(endpoint) ?? faults.take(endpoint, null), endpoint, req, res)) next();
    },
  ];
}

/** For calls of the sandbox's own pages. Only runs the checks. */
export const beforePageCall: BeforeCall = (endpoint, ...checks) => [...serverErrorMessage(endpoint), ...checks];

/** Sets the interface's message for server errors of a call. */
export function serverErrorMessage(endpoint: Endpoint): RequestHandler[] {
  const message = errorMessages[endpoint]?.[500];
  return message === undefined ? [] : [failsWith(message)];
}
