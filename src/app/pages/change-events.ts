import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { EventStreams } from '../../server/index.ts';
import { RequestError } from '../web/errors.ts';

/** Interval between two looks, and so the age that a page may have. */
const lookEveryMs = 500;
/** Streams of the app's pages: at most 20 of one user, over all launches, and 2,000 of everybody. */
export const createStreams = (): EventStreams => new EventStreams({ maxOfOne: 20, maxOfAll: 2_000 });

/** State of what a page shows. */
export interface Look {
  /** Differs if the page is out of date. */
  readonly seen: string;
  /** Longest age of the page in milliseconds, if something may change that `seen` does not show, such as a remaining time. Null: none. */
  readonly maxAgeMs: number | null;
}

/** Subject of a stream, and its owner. */
export interface Watched {
  /** User whose streams are counted together. */
  readonly owner: string;
  /** Streams of one subject share their looks. */
  readonly subject: string;
  readonly look: () => Promise<Look>;
}

interface Watch {
  readonly listeners: Set<(look: Look) => void>;
  readonly lookAgain: () => Promise<void>;
  last: Look | null;
}

/** Server-sent events: `change` whenever a look has `seen` something else, and when the page has its greatest age. All subjects are looked at together, so that their queries are joined. */
export function changeEvents(streams: EventStreams, watchedBy: (params: object) => Promise<Watched>): RequestHandler {
  const watches = new Map<string, Watch>();
  let timer: NodeJS.Timeout | undefined;
  const lookAtAll = () => watches.forEach(({ lookAgain }) => void lookAgain());

  function listen({ subject, look }: Watched, listener: (look: Look) => void, log: Pick<Logger, 'warn'>): () => void {
    let watch = watches.get(subject);
    if (watch === undefined) {
      let isBusy = false;
      const lookAgain = async () => {
        if (isBusy) return;
        isBusy = true;
        try {
          const now = (made.last = await look());
          made.listeners.forEach((notify) => notify(now));
        } catch (error) {
          log.warn({ err: error }, 'could not tell a page of changes');
        } finally {
          isBusy = false;
        }
      };
      const made: Watch = { listeners: new Set(), last: null, lookAgain };
      watches.set(subject, (watch = made));
      if (watches.size === 1) timer = setInterval(lookAtAll, lookEveryMs);
    }
    const { listeners, last } = watch;
    listeners.add(listener);
    if (last !== null) listener(last);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      watches.delete(subject);
      if (watches.size === 0) clearInterval(timer);
    };
  }

  return async (req, res) => {
    const watched = await watchedBy(req.params);
    if (res.closed) return;
    streams.serve(req, res, {
      owner: watched.owner,
      refusal: () =>
        new RequestError(
          429,
          'too_many_streams',
          'You have too many pages of this app open, or everybody together has. Close some and reload this page: until then it does not update.',
        ),
      begin(send) {
        let [seen, toldAt] = ['', performance.now()];
        const tell = (now: Look) => {
          if (now.seen === seen && performance.now() - toldAt < (now.maxAgeMs ?? Infinity)) return;
          [seen, toldAt] = [now.seen, performance.now()];
          send('');
        };
        return listen(watched, tell, req.log);
      },
    });
  };
}
