import type { Request, RequestHandler } from 'express';
import { hostNameOf, isLocalRequest, isLoopbackName, wasForwarded } from '../../contract/index.ts';
import { equalSecrets } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';

/** `Host` must be a loopback name or the configured one: a name that an attacker points here is 421. */
export function requireOwnHost(publicUrl: () => string): RequestHandler {
  return (req, _res, next) => {
    const name = hostNameOf(req.get('host'));
    if (name === null || (!isLoopbackName(name) && name !== new URL(publicUrl()).hostname)) {
      throw new SandboxError(421, 'misdirected_request', 'Misdirected Request');
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
    if (isForeign) throw new SandboxError(403, 'foreign_origin', 'Request from another origin');
    next();
  };
}

/** As `requireOwnOrigin`, for what changes state; reading is judged by the API key alone. */
export function requireOwnOriginToChange(publicUrl: () => string): RequestHandler {
  const guard = requireOwnOrigin(publicUrl);
  return (req, res, next) => (isReading(req) ? next() : guard(req, res, next));
}

function isReading(req: Request): boolean {
  return ['GET', 'HEAD', 'OPTIONS'].includes(req.method) || req.path.startsWith('/public/stac');
}

/** Without an admin key the control calls answer on loopback only; with one it is required from everywhere. */
export function requireAdmin(adminKey: string | null): RequestHandler {
  return (req, _res, next) => {
    if (adminKey === null) {
      // Behind a proxy everybody comes from the proxy's address, whoever it is.
      if (wasForwarded(req))
        throw new SandboxError(403, 'loopback_only', 'Set SANDBOX_ADMIN_KEY to control the sandbox through a proxy');
      if (!isLocalRequest(req))
        throw new SandboxError(
          403,
          'loopback_only',
          'Set SANDBOX_ADMIN_KEY to control the sandbox from another machine',
        );
    } else if (!equalSecrets(req.get('x-admin-key') ?? '', adminKey)) {
      throw new SandboxError(401, 'admin_key_required', 'X-ADMIN-KEY is required');
    }
    next();
  };
}
