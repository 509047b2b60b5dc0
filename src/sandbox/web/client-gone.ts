import type { Response } from 'express';

/** Aborted when the client goes away before it has its answer: what is made for it alone can be left. */
export function clientGone(res: Response): AbortSignal {
  const abort = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) abort.abort(new Error('the client went away'));
  });
  return abort.signal;
}
