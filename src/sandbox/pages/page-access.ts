import { parseCookie } from 'cookie';
import { Router, urlencoded, type Request, type RequestHandler } from 'express';
import { limitOfWrongKeys, requireAdmin } from '../call/guards.ts';
import { equalSecrets } from '../../server/index.ts';
import type { Signer } from '../secrets.ts';
import type { RenderPage } from './page.ts';
import { fieldsOf } from '../web/form-body.ts';
import { SandboxError } from '../web/sandbox-error.ts';

/** The sandbox's own cookie: the app on the same host has another name. */
const cookieName = 'sandbox.admin';
const purpose = 'sign-in to the pages';
const signedInForMs = 12 * 3_600_000;

/** Protects the pages like the control calls: without an admin key, only loopback has access; with one, only signed-in people. */
export function requirePageAccess(adminKey: string | null, signer: Signer, now: () => number): RequestHandler {
  if (adminKey === null) return requireAdmin(null);
  return (req, res, next) => {
    if (isSignedIn(req, adminKey, signer, now())) return next();
    if (req.method !== 'GET') throw new SandboxError('unauthorized', { message: 'Sign in first' });
    res.redirect(303, `/sign-in?to=${encodeURIComponent(req.originalUrl)}`);
  };
}

export interface SignInOptions {
  readonly adminKey: string;
  readonly signer: Signer;
  /** The machine's clock: the sandbox's can be moved back, and would make an old cookie good again. */
  readonly now: () => number;
  readonly render: RenderPage;
  /** True where browsers reach the sandbox by https. */
  readonly isSecure: () => boolean;
}

/** `GET` and `POST /sign-in`, with the key of `SANDBOX_ADMIN_KEY` in a form. */
export function signInRoutes({ adminKey, signer, now, render, isSecure }: SignInOptions): Router {
  const router = Router();
  router.get('/sign-in', (req, res) => render(res, 'sign-in', { to: localPath(req.query['to']), isWrong: false }));
  const limited = limitOfWrongKeys();
  const isRight = (req: Request) => {
    const { adminKey: given } = fieldsOf(req);
    return typeof given === 'string' && equalSecrets(given, adminKey);
  };
  router.post('/sign-in', urlencoded({ extended: false, limit: '4kb' }));
  // Only wrong keys are counted: those of others lock nobody out who has the right one.
  router.post('/sign-in', (req, res, next) => (isRight(req) ? next() : void limited(req, res, next)));
  router.post('/sign-in', (req, res) => {
    const { to } = fieldsOf(req);
    if (!isRight(req)) return render(res.status(401), 'sign-in', { to: localPath(to), isWrong: true });
    const until = String(now() + signedInForMs);
    res.cookie(cookieName, `${until}.${signer.sign(purpose, adminKey, until)}`, {
      httpOnly: true,
      sameSite: 'strict',
      secure: isSecure(),
      path: '/',
      maxAge: signedInForMs,
    });
    res.redirect(303, localPath(to));
  });
  return router;
}

function isSignedIn(req: Request, adminKey: string, signer: Signer, nowMs: number): boolean {
  const [until = '', signature = ''] = (parseCookie(req.get('cookie') ?? '')[cookieName] ?? '').split('.');
  return Number(until) > nowMs && signer.verify(signature, purpose, adminKey, until);
}

/** A path of the sandbox's own, never another site. */
function localPath(to: unknown): string {
  return typeof to === 'string' && /^\/(?![/\\])/.test(to) ? to : '/';
}
