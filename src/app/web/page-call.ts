import type { Response } from 'express';
import { KitError } from '../../contract/index.ts';

/** Longer than that nobody looks at a page that does not come. */
const longestMs = 20_000;

/** Ends the platform's calls that a page waits for, after 20 s. The error is for the user, and nothing is lost by it. */
export function pageDeadline(ms = longestMs): AbortSignal {
  const over = new AbortController();
  const slow = () =>
    new KitError('platform_slow', `the platform did not answer within ${ms / 1_000} s; try again later`, {
      status: 502,
      data: { isForUser: true },
    });
  setTimeout(() => over.abort(slow()), ms).unref();
  return over.signal;
}

/** As `pageDeadline`, and ends when the browser has left. */
export function whileAsked(res: Response, ms = longestMs): AbortSignal {
  const gone = new AbortController();
  res.once('close', () => gone.abort(new Error('nobody waits for the answer')));
  return AbortSignal.any([gone.signal, pageDeadline(ms)]);
}
