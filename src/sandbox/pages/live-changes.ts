import type { RequestHandler } from 'express';
import { OpenStreams } from '../../server/index.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import type { SandboxDatabase } from '../database.ts';

/** How old what a page shows may be. */
const lookEveryMs = 400;
/** Time itself changes what pages show: minutes that are left, operations that expire. */
const atLeastEveryMs = 5_000;

/** What pages show, by the tables that it is kept in. */
const topics: Readonly<Record<string, readonly string[]>> = {
  apps: ['apps', 'users'],
  launches: ['launches', 'tokens', 'launch_events', 'clock_offsets', 'faults'],
  operations: ['operations'],
  calls: ['calls', 'uploads', 'upload_parts'],
  files: ['files'],
  jobs: ['inference_jobs'],
};

/** Server-sent events: `change` whenever something in the database has changed, with its topics as data, or none where only time has passed. A page that shows one of them then fetches itself anew. */
export function liveChanges(database: SandboxDatabase): RequestHandler {
  const countOf = countChanges(database);
  const streams = new OpenStreams({ maxOfOne: 50, maxOfAll: 500 });
  return (req, res) => {
    if (req.method === 'HEAD') return void res.type('text/event-stream').end();
    const close = streams.open(req.socket.remoteAddress ?? '');
    if (close === null)
      throw new SandboxError('too_many_requests', {
        message: 'Too many pages are open. Close some and reload this one: until then it does not update.',
      });
    res.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
    res.flushHeaders();
    res.write('retry: 1000\n\n');
    let [seen, toldAt] = [countOf(), performance.now()];
    const timer = setInterval(() => {
      if (!database.open) return res.end();
      const now = countOf();
      const changed = [...now].filter(([topic, n]) => seen.get(topic) !== n).map(([topic]) => topic);
      if (changed.length === 0 && performance.now() - toldAt < atLeastEveryMs) return;
      [seen, toldAt] = [now, performance.now()];
      res.write(`event: change\ndata: ${changed.join(' ')}\n\n`);
    }, lookEveryMs);
    req.once('close', () => {
      clearInterval(timer);
      close();
    });
  };
}

/** Counts by triggers of this connection, which is the only one: a change is seen whoever makes it. */
function countChanges(database: SandboxDatabase): () => Map<string, number> {
  database.exec('create temp table changes (topic text primary key, n integer not null) strict');
  for (const [topic, tables] of Object.entries(topics)) {
    database.prepare('insert into temp.changes values (?, 0)').run(topic);
    for (const table of tables) {
      for (const act of ['insert', 'update', 'delete']) {
        database.exec(
          `create temp trigger ${table}_${act} after ${act} on main.${table} begin update changes set n = n + 1 where topic = '${topic}'; end`,
        );
      }
    }
  }
  const statement = database.prepare<[], { topic: string; n: number }>('select topic, n from temp.changes');
  return () => new Map(statement.all().map(({ topic, n }) => [topic, n]));
}
