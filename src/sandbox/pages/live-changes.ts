import type { RequestHandler } from 'express';
import { EventStreams } from '../../server/index.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import type { SandboxDatabase } from '../database.ts';
import type { Topics } from '../slices.ts';

/** Greatest age of a page's data. */
const lookEveryMs = 400;
/** Pages reload this often without a change, because time alone changes them: minutes that are left, operations that expire. */
const atLeastEveryMs = 5_000;

/** Server-sent events: `change` if something in the database has changed, with its topics as data, or without data if only time has passed. A page that shows a topic then reloads its data. */
export function liveChanges(database: SandboxDatabase, topics: Topics): RequestHandler {
  const countOf = countChanges(database, topics);
  const streams = new EventStreams({ maxOfOne: 50, maxOfAll: 500 });
  return (req, res) =>
    streams.serve(req, res, {
      owner: req.socket.remoteAddress ?? '',
      refusal: () =>
        new SandboxError('too_many_requests', {
          message: 'Too many pages are open. Close some and reload this one: until then it does not update.',
        }),
      begin(send) {
        let [seen, toldAt] = [countOf(), performance.now()];
        const timer = setInterval(() => {
          if (!database.open) return res.end();
          const now = countOf();
          const changed = [...now].filter(([topic, n]) => seen.get(topic) !== n).map(([topic]) => topic);
          if (changed.length === 0 && performance.now() - toldAt < atLeastEveryMs) return;
          [seen, toldAt] = [now, performance.now()];
          send(changed.join(' '));
        }, lookEveryMs);
        return () => clearInterval(timer);
      },
    });
}

/** Counts changes by triggers. This is the only connection to the database, so no change escapes. */
function countChanges(database: SandboxDatabase, topics: Topics): () => Map<string, number> {
  database.exec('create temp table changes (topic text primary key, n integer not null) strict');
  for (const [topic, tables] of topics) {
    database.prepare('insert or ignore into temp.changes values (?, 0)').run(topic);
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
