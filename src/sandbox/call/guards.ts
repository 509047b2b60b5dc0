import type { Request, RequestHandler } from 'express';
import { rateLimit } from 'express-rate-limit';
import { isLoopbackName } from '../../contract/index.ts';
import { equalSecrets, hostNameOf, isLocalRequest, wasForwarded } from '../../server/index.ts';
import { SandboxError } from '../web/sandbox-error.ts';

/** `Host` must be a loopback name or the configured one, and named once: a name that an attacker points here is 421. */
export function requireOwnHost(publicUrl: () => string): RequestHandler {
  return (req, _res, next) => {
    const name = hostNameOf(req.get('host'));
    const isNamedOnce = req.headersDistinct['host']?.length === 1;
    if (!isNamedOnce || name === null || (!isLoopbackName(name) && name !== new URL(publicUrl()).hostname)) {
      throw new SandboxError('misdirected_request');
    }
    next();
  };
}

/** A request that a page of another origin makes is refused: it must not act for whoever looks at it. */
export function requireOwnOrigin(publicUrl: () => string): RequestHandler {
  return (req, _res, next) => {
    const origin = req.get('origin');
    const site = req.get('sec-fetch-site');
    const own = [`${req.protocol}://${req.get('host')}`, new URL(publicUrl()).origin];
    const isForeign =
      (origin !== undefined && !own.includes(origin)) ||
      (site !== undefined && site !== 'same-origin' && site !== 'none');
    if (isForeign) throw new SandboxError('foreign_origin');
    next();
  };
}

/** Applies `requireOwnOrigin` to calls that change state. Calls that only read need just the API key. */
export function requireOwnOriginToChange(publicUrl: () => string): RequestHandler {
  const guard = requireOwnOrigin(publicUrl);
  return (req, res, next) => (isReading(req) ? next() : guard(req, res, next));
}

function isReading(req: Request): boolean {
  return ['GET', 'HEAD', 'OPTIONS'].includes(req.method) || req.path.startsWith('/public/stac');
}

const wrongKeysWindowMs = 5 * 60_000;
const wrongKeysPerWindow = 20;

/** Throws 429 `too_many_requests` from the 21st wrong admin key within 5 minutes. Right keys do not pass through it. */
export const limitOfWrongKeys = (): RequestHandler =>
  rateLimit({
    windowMs: wrongKeysWindowMs,
    limit: wrongKeysPerWindow,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    validate: false,
    // Counts all callers together: behind a proxy they have one address, and many can guess a key as well as one.
    keyGenerator: () => 'everybody',
    handler: (_req, _res, next) =>
      next(new SandboxError('too_many_requests', { message: 'Too many wrong keys. Try again in a few minutes.' })),
  });

/** Without an admin key the control calls answer on loopback only; with one it is required from everywhere. */
export function requireAdmin(adminKey: string | null): RequestHandler {
  const limited = adminKey === null ? null : limitOfWrongKeys();
  return (req, res, next) => {
    if (adminKey === null) {
      // Behind a proxy everybody comes from the proxy's address, whoever it is.
      if (wasForwarded(req))
        throw new SandboxError('loopback_only', {
          message: 'Set SANDBOX_ADMIN_KEY to control the sandbox through a proxy',
        });
      if (!isLocalRequest(req)) throw new SandboxError('loopback_only');
      return next();
    }
    const given = req.get('x-admin-key');
    if (given !== undefined && equalSecrets(given, adminKey)) return next();
    const refuse = (error?: unknown) => next(error ?? new SandboxError('admin_key_required'));
    return given === undefined || !limited ? refuse() : void limited(req, res, refuse);
  };
}
