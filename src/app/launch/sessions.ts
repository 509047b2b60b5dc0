import { hkdfSync } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import session from 'express-session';
import onHeaders from 'on-headers';
import type { AppConfig } from '../config.ts';
import { RequestError } from '../web/errors.ts';
import type { SessionStore } from './session-store.ts';

declare module 'express-session' {
  interface SessionData {
    launchId: string;
  }
}

/** The app's own cookie: the sandbox on the same host has another name. */
const cookieName = 'app.sid';

/** Names the launches that a browser has begun. It opens none of them: that takes the launch's own cookie. */
const begunCookie = 'app.begun';
const maxBegun = 8;

export function launchPath(launchId: string): string {
  return `/launches/${launchId}`;
}

/** The launch in the parameters of a route below `launchPath`, where Express's types do not know them. */
export function launchIdIn(params: object): string {
  const { launchId = '' }: { launchId?: string } = params;
  return launchId;
}

/**
 * Sessions of one launch each. The cookie is scoped to the launch's path, so that two launches of two
 * users in one browser have a session each and cannot mix.
 */
export function launchSessions(config: AppConfig, store: SessionStore): RequestHandler {
  // The first signs, all verify.
  const secret = config.secrets.map((sealingSecret) =>
    Buffer.from(hkdfSync('sha256', sealingSecret.reveal(), '', 'session cookies', 32)).toString('base64url'),
  );
  return session({
    name: cookieName,
    secret,
    store,
    resave: false,
    saveUninitialized: false,
    cookie: (req) => {
      // In a frame on another site a browser sends nothing else, and that only over TLS.
      const isFramed = config.embeddedIn !== null && req.secure;
      return {
        path: /^\/launches\/[^/?]+/.exec(req.originalUrl)?.[0] ?? '/',
        httpOnly: true,
        sameSite: isFramed ? 'none' : 'lax',
        secure: req.secure,
        partitioned: isFramed,
      };
    },
  });
}

/** Puts the launch into a new session under a fresh id, with a cookie for the launch's path only. */
export async function openSession(req: Request, launchId: string): Promise<void> {
  await new Promise<void>((resolve, reject) =>
    req.session.regenerate((error: unknown) => (error ? reject(error) : resolve())),
  );
  req.session.launchId = launchId;
  req.session.cookie.path = launchPath(launchId);
  await new Promise<void>((resolve, reject) =>
    req.session.save((error: unknown) => (error ? reject(error) : resolve())),
  );
}

/** Reads the launch ids of the cookie, the latest first. */
function begunIn(req: Request): string[] {
  const value = new RegExp(`(?:^|;\\s*)${begunCookie.replace('.', '\\.')}=([\\w.-]+)`).exec(
    req.headers.cookie ?? '',
  )?.[1];
  return value?.split('.').slice(0, maxBegun) ?? [];
}

/** Returns true if this browser has begun the launch. */
export function hasBegunHere(req: Request, launchId: string): boolean {
  return req.session.launchId === launchId || begunIn(req).includes(launchId);
}

/** Lets a browser come back to the launches that it begins. Goes before the sessions, so that their cookie is written first. */
export function rememberBegun(config: AppConfig): RequestHandler {
  return (req, res, next) => {
    onHeaders(res, () => {
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- a request that ends before the session middleware has none
      const launchId = req.session?.launchId;
      if (launchId === undefined || res.statusCode !== 303) return;
      const begun = [launchId, ...begunIn(req).filter((otherId) => otherId !== launchId)].slice(0, maxBegun);
      res.cookie(begunCookie, begun.join('.'), {
        path: '/launch',
        httpOnly: true,
        // A form that the marketplace posts comes from another site.
        sameSite: req.secure ? 'none' : 'lax',
        secure: req.secure,
        partitioned: config.embeddedIn !== null && req.secure,
      });
    });
    next();
  };
}

export const noSession = (): RequestError =>
  new RequestError(
    404,
    'no_session',
    'There is no session here. It may have ended; launch the app again from the marketplace.',
  );

/** Lets only the launch's own session through; to everybody else the launch does not exist. */
export const requireLaunchSession: RequestHandler<{ launchId: string }> = (req, _res, next) => {
  if (req.session.launchId === req.params.launchId) return next();
  throw noSession();
};
