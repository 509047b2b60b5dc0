import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { EventStreams } from '../../server/index.ts';
import { RequestError } from '../web/errors.ts';

/** Interval between two looks, and so the age that a page may have. */
const lookEveryMs = 500;
/** Pages refresh at least this often, because time itself and the platform's work on a file change what they show. */
const atLeastEveryMs = 3_000;
/** Streams of one user, over all launches, and of everybody. */
const maxStreams = { maxOfOne: 20, maxOfAll: 2_000 };

/** State of what a page shows. */
export interface Look {
  /** Differs if the page is out of date. */
  readonly seen: string;
  /** True while time itself may change the page. */
  readonly isMoving: boolean;
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
  readonly timer: NodeJS.Timeout;
  last: Look | null;
}

/** Server-sent events: `change` whenever a look has `seen` something else, and every `atLeastEveryMs` while something is moving. */
export function changeEvents(watchedBy: (params: object) => Promise<Watched>): RequestHandler {
  const streams = new EventStreams(maxStreams);
  const watches = new Map<string, Watch>();

  function listen({ subject, look }: Watched, listener: (look: Look) => void, log: Pick<Logger, 'warn'>): () => void {
    let watch = watches.get(subject);
    if (watch === undefined) {
      const made: Watch = { listeners: new Set(), last: null, timer: setInterval(() => void lookAgain(), lookEveryMs) };
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
      watches.set(subject, (watch = made));
    }
    const { listeners, timer, last } = watch;
    listeners.add(listener);
    if (last !== null) listener(last);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearInterval(timer);
      watches.delete(subject);
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
          if (now.seen === seen && !(now.isMoving && performance.now() - toldAt > atLeastEveryMs)) return;
          [seen, toldAt] = [now.seen, performance.now()];
          send('');
        };
        return listen(watched, tell, req.log);
      },
    });
  };
}
