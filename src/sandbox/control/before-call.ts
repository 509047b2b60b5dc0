import type { RequestHandler } from 'express';
import { errorMessages } from '../../contract/index.ts';
import type { PlatformEndpoint } from '../platform-endpoints.ts';
import type { WhoseCall } from '../referee/whose-call.ts';
import type { Trace } from '../referee/trace.ts';
import { failsWith } from '../web/error-boundary.ts';
import { applyFault, type Faults } from './faults.ts';
import type { RateLimit } from './rate-limit.ts';

/** What stands before a call's own work. `checks`: of its key or link, which count before limits and faults. */
export type BeforeCall = (endpoint: PlatformEndpoint, ...checks: RequestHandler[]) => RequestHandler[];

/** Before calls without an identity token: the trace, the call's own checks, the rate limit and armed faults. */
export function beforeCall({
  trace,
  whose,
  faults,
  rateLimit,
}: {
  readonly trace: Trace;
  readonly whose: WhoseCall;
  readonly faults: Faults;
  readonly rateLimit: RateLimit;
}): BeforeCall {
  return (endpoint, ...checks) => [
    ...saysWhatFailed(endpoint),
    (req, res, next) => {
      const known = whose(endpoint, req);
      // Pictures that nobody's launch asked for are left out: a page of the catalog asks for dozens.
      if (endpoint !== 'stac.preview' || known.launchId !== null) trace.beginOfGroup(req, res, endpoint, known);
      next();
    },
    ...checks,
    async (req, res, next) => {
      if (await applyFault(rateLimit.take(endpoint) ?? faults.take(endpoint, null), endpoint, req, res)) next();
    },
  ];
}

/** The same for calls of the sandbox's own pages: no trace, no limit, no fault. */
export const beforePageCall: BeforeCall = (endpoint, ...checks) => [...saysWhatFailed(endpoint), ...checks];

/** The interface's message for whatever fails on the server's side. */
export function saysWhatFailed(endpoint: PlatformEndpoint): RequestHandler[] {
  const message = errorMessages[endpoint]?.[500];
  return message === undefined ? [] : [failsWith(message)];
}
