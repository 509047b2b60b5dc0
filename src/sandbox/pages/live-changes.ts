import type { RequestHandler } from 'express';
import { OpenStreams } from '../../contract/index.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import type { SandboxDatabase } from '../database.ts';

/** How old what a page shows may be. */
const lookEveryMs = 400;
/** Time itself changes what pages show: minutes that are left, operations that expire. */
const atLeastEveryMs = 5_000;

/** Server-sent events: `change` whenever something in the database has changed. A page then fetches itself anew. */
export function liveChanges(database: SandboxDatabase): RequestHandler {
  const statement = database.prepare<[], { n: number }>('select total_changes() as n');
  const count = () => statement.get()!.n;
  const streams = new OpenStreams({ mostOfOne: 50, mostOfAll: 500 });
  return (req, res) => {
    const close = streams.open(req.socket.remoteAddress ?? '');
    if (close === null) throw new SandboxError(429, 'too_many_requests', 'Too many pages are open. Close some; this one shows the state of when it was loaded.');
    res.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
    res.flushHeaders();
    res.write('retry: 1000\n\n');
    let [seen, toldAt] = [count(), performance.now()];
    const timer = setInterval(() => {
      if (!database.open) return res.end();
      const now = count();
      if (now === seen && performance.now() - toldAt < atLeastEveryMs) return;
      [seen, toldAt] = [now, performance.now()];
      res.write('event: change\ndata: \n\n');
    }, lookEveryMs);
    req.once('close', () => {
      clearInterval(timer);
      close();
    });
  };
}
