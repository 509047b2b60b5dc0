import type { RequestHandler } from 'express';
import { rateLimit } from 'express-rate-limit';
import { RequestError } from '../web/errors.ts';

const windowMs = 60_000;

/** At most so many launches a minute from one address: each costs the platform two calls. Answers 429 with `Retry-After`. */
export function limitLaunches(perMinute: number): RequestHandler {
  return rateLimit({
    windowMs,
    limit: perMinute,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    // Only `trust proxy` decides which address counts.
    validate: { xForwardedForHeader: false },
    handler: (_req, _res, next) =>
      next(
        new RequestError(
          429,
          'too_many_launches',
          'This address has launched the app too often. Try again in a minute.',
        ),
      ),
  });
}
