import type { Response } from 'express';
import { KitError } from '../../contract/index.ts';

/** Users leave a page that takes longer. */
const longestMs = 20_000;

/** Aborts the platform calls of a page after 20 s, with an error for the user. */
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

/** Works like `pageDeadline`. Also aborts if the browser leaves. */
export function whileAsked(res: Response, ms = longestMs): AbortSignal {
  const gone = new AbortController();
  res.once('close', () => gone.abort(new Error('nobody waits for the answer')));
  return AbortSignal.any([gone.signal, pageDeadline(ms)]);
}
