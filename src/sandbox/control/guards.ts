import { isIP } from 'node:net';
import type { Request, RequestHandler } from 'express';
import { equalSecrets } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';

/** Name of a `Host` header without its port, lower case, IPv6 without brackets. */
function hostName(host: string): string {
  return (/^\[([^\]]+)\]/.exec(host)?.[1] ?? host.replace(/:\d*$/, '')).toLowerCase();
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}

function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.replace(/^::ffff:/, '');
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

/** `Host` must be a loopback name or the configured one: a name that an attacker points here is 421. */
export function requireOwnHost(publicUrl: () => string): RequestHandler {
  return (req, _res, next) => {
    const name = hostName(req.get('host') ?? '');
    if (!isLoopbackName(name) && name !== hostName(new URL(publicUrl()).host)) {
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
    const isForeign = (origin !== undefined && !own.includes(origin)) || (site !== undefined && site !== 'same-origin' && site !== 'none');
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
      if (!isLoopbackAddress(req.socket.remoteAddress)) throw new SandboxError(403, 'loopback_only', 'Set SANDBOX_ADMIN_KEY to control the sandbox from another machine');
    } else if (!equalSecrets(req.get('x-admin-key') ?? '', adminKey)) {
      throw new SandboxError(401, 'admin_key_required', 'X-ADMIN-KEY is required');
    }
    next();
  };
}
