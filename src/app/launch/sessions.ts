import { hkdfSync } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import session from 'express-session';
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

export function launchPath(launchId: string): string {
  return `/launches/${launchId}`;
}

/**
 * Sessions of one launch each. The cookie is scoped to the launch's path, so that two launches of two
 * users in one browser have a session each and cannot mix.
 */
export function launchSessions(config: AppConfig, store: SessionStore): RequestHandler {
  // The first signs, all verify.
  const secret = config.secrets.map((one) =>
    Buffer.from(hkdfSync('sha256', one.reveal(), '', 'session cookies', 32)).toString('base64url'),
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

/** Lets only the launch's own session through; to everybody else the launch does not exist. */
export const requireLaunchSession: RequestHandler<{ launchId: string }> = (req, _res, next) => {
  if (req.session?.launchId !== undefined && req.session.launchId === req.params.launchId) return next();
  throw new RequestError(
    404,
    'no_session',
    'There is no session here. It may have ended; launch the app again from the marketplace.',
  );
};
