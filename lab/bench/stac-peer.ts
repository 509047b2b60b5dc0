import Sqlite from 'better-sqlite3';
import { benchItems } from './stac-items.ts';

export interface PeerQuery {
  readonly box: readonly [number, number, number, number];
  readonly collections: readonly string[];
  readonly startMs: number;
  readonly endMs: number;
  readonly limit: number;
}

/** The usual way without a server: SQLite's R*Tree beside a table, boxes only, the count by SQL. In this process: no HTTP, no JSON to make. */
export function buildPeer(path: string, count: number) {
  const database = new Sqlite(path);
  database.pragma('journal_mode = OFF');
  database.pragma('synchronous = OFF');
  database.exec(
    'create virtual table box using rtree(n, west, east, south, north); create table item (n integer primary key, id text, collection text, ms integer);',
  );
  const [addBox, addItem] = [
    database.prepare('insert into box values (?, ?, ?, ?, ?)'),
    database.prepare('insert into item values (?, ?, ?, ?)'),
  ];
  database.transaction(() => {
    let n = 0;
    for (const { id, collection, ms, ring } of benchItems(count)) {
      n += 1;
      const [xs, ys] = [ring.map(([x]) => x), ring.map(([, y]) => y)];
      addBox.run(n, Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys));
      addItem.run(n, id, collection, ms);
    }
  })();
  database.exec('create index item_by_time on item (collection, ms)');
  const condition = (collections: number) =>
    `where west <= ? and east >= ? and south <= ? and north >= ? and collection in (${Array(collections).fill('?').join(',')}) and ms between ? and ?`;
  // SQLite keeps the order of a cross join: by the box first, or by collection and time first.
  const plans = ['from box cross join item using (n)', 'from item cross join box using (n)'];
  return {
    /** Milliseconds of the better plan for this query. */
    search({ box: [west, south, east, north], collections, startMs, endMs, limit }: PeerQuery): number {
      const values = [east, west, north, south, ...collections, startMs, endMs];
      const times = plans.map((plan) => {
        const from = performance.now();
        const where = `${plan} ${condition(collections.length)}`;
        database.prepare(`select n, id ${where} order by ms desc limit ${limit}`).all(...values);
        database.prepare(`select count(*) as c ${where}`).get(...values);
        return performance.now() - from;
      });
      return Math.min(...times);
    },
    close: () => database.close(),
  };
}
