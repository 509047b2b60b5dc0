import type { RequestHandler } from 'express';
import { errorMessages, type CallFacts, type Endpoint } from '../../contract/index.ts';
import { failsWith } from '../error-boundary.ts';
import { requireApiKey, type KnownKeys } from '../identity/api-keys.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Launches } from '../marketplace/launches.ts';
import type { AttributeCall } from '../referee/call-attribution.ts';
import type { Trace } from '../referee/trace.ts';
import { contextOf } from '../web/call-context.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { applyFault } from './apply-fault.ts';
import type { Route } from './call-router.ts';
import type { Faults } from './faults.ts';
import type { RateLimit } from './rate-limit.ts';

/** A row of the platform's calls, as far as the checks before its work need it. */
export interface PlatformRoute
  extends Route, Pick<CallFacts, 'group' | 'permissions' | 'takesBearer' | 'takesExpiredToken'> {
  readonly endpoint: Endpoint;
}

/** Returns the handlers that run before the body of a call is read. `signature` verifies a signed address, which needs no key. */
export type BeforeCall = (row: PlatformRoute, signature?: RequestHandler) => RequestHandler[];

export interface BeforeCallOptions {
  readonly keys: KnownKeys;
  readonly tokens: IdentityTokens;
  readonly launches: Launches;
  readonly trace: Trace;
  readonly attribute: AttributeCall;
  readonly faults: Faults;
  readonly rateLimit: RateLimit;
}

/**
 * The checks of every call of the platform, in the contract's order: the call is recorded, then its key, permission and
 * token are checked, then the rate limit and armed faults apply. `CallRouter` has checked path and method before, and
 * reads the body after them.
 */
export function beforeCall(options: BeforeCallOptions): BeforeCall {
  const { keys, trace, attribute, faults, rateLimit } = options;
  return (row, signature) => [
    ...serverErrorMessage(row.endpoint),
    (req, res, next) => {
      const attribution = attribute(row.endpoint, req);
      if (attribution !== null) trace.begin(req, res, row.endpoint, attribution);
      next();
    },
    signature ?? requireApiKey(keys, row),
    ...(row.path.includes(':token') ? [requireToken(row, options)] : []),
    async (req, res, next) => {
      const effect = rateLimit.take(row.endpoint) ?? faults.take(row.endpoint, contextOf(res).launchId ?? null);
      if (await applyFault(effect, row.endpoint, req, res)) next();
    },
  ];
}

/** For calls of the sandbox's own pages: only the key is checked, and nothing is recorded. */
export const beforePageCall =
  (keys: KnownKeys): BeforeCall =>
  (row, signature) => [...serverErrorMessage(row.endpoint), signature ?? requireApiKey(keys, row)];

/** Requires the identity token in the path, of a launch of the app whose key the call has. */
function requireToken(
  { takesExpiredToken = false }: PlatformRoute,
  { tokens, launches }: Pick<BeforeCallOptions, 'tokens' | 'launches'>,
): RequestHandler {
  return (req, res, next) => {
    const token = String(req.params['token']);
    const launchId = takesExpiredToken ? tokens.requireRenewable(token) : tokens.authenticate(token);
    const call = contextOf(res);
    // A key of one app is no good for launches of another.
    if (call.keyOfApp && call.keyOfApp !== launches.get(launchId).appId) throw new SandboxError('permission_denied');
    call.launchId = launchId;
    next();
  };
}

/** Sets the interface's message for server errors of a call. */
function serverErrorMessage(endpoint: Endpoint): RequestHandler[] {
  const message = errorMessages[endpoint]?.[500];
  return message === undefined ? [] : [failsWith(message)];
}
