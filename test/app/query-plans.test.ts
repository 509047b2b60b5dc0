/** Queries that run again and again read no more than they need, however many runs there are. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/app/database.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { onlyInAll } from '../support/tags.ts';

test('runs that ended long ago are found by an index, and so are those that wait', async () => {
  const dataDir = await testFolder();
  await (await openDatabase({ dataDir, databaseUrl: null })).destroy();
  const file = new Sqlite(join(dataDir, 'app.db'), { readonly: true });
  const plan = (query: string) =>
    file
      .prepare<[], { detail: string }>(`explain query plan ${query}`)
      .all()
      .map(({ detail }) => detail)
      .join('; ');
  try {
    expect(plan(`select id from runs where updated_at < 5 and state in ('COMPLETED', 'FAILED') limit 200`)).toMatch(
      /USING INDEX runs_by_state_and_change \(state=\? AND updated_at<\?\)/,
    );
    expect(plan(`select state, count(*) from runs where state in ('APPROVED') group by state`)).toMatch(
      /INDEX runs_by_state_and_change \(state=\?\)/,
    );
  } finally {
    file.close();
  }
});

test(
  'with 100,000 runs that living workers have, no periodic query reads more than it finds',
  { ...needing('postgresql'), tags: onlyInAll, timeout: 60_000 },
  async () => {
    const address = await (await startPostgres()).create();
    const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: address });
    cleanUpLater(() => database.destroy());
    await query(
      address,
      `insert into workers (name, alive_at, can) select 'w' || i, (extract(epoch from clock_timestamp()) * 1000)::bigint + 3600000, '["cog@1.0.0"]'
     from generate_series(1, 20) i;
     insert into runs (id, launch_id, state, step_id, step_version, parameters, input, idempotency_key, created_at, updated_at, worker, owner)
     select 'r' || i, 'l' || i % 1000, case when i % 100 = 0 then 'APPROVED' else 'AWAITING_APPROVAL' end, 'cog', '1.0.0', '{}',
       '{"type":"synthetic","size":64}', 'k' || i, i, i, 'w' || (1 + i % 20), 'u' || i % 100 from generate_series(1, 100000) i;
     analyze`,
    );
    const store = new SqlRunStore(database, Date.now, { isShared: true });
    const periodic: Record<string, () => Promise<unknown>> = {
      listOrphans: () => store.listOrphans('w1'),
      listStranded: () => store.listStranded(0),
      listWaitingLaunches: () => store.listWaitingLaunches(),
      hasWaiting: () => store.hasWaiting(),
      renewLease: () => store.renewLease('w1', ['cog@1.0.0']),
      isNewerThan: () => store.isNewerThan('016-fleet'),
      claimNext: () => store.claimNext('w1', ['cog@1.0.0']),
    };
    // Rows that PostgreSQL has read of the runs, by scans and by indexes.
    const readRows = async () => {
      await query(address, 'select pg_stat_force_next_flush()');
      await sleep(300);
      const [row] = await query(
        address,
        `select seq_tup_read + coalesce(idx_tup_fetch, 0) as n from pg_stat_user_tables where relname = 'runs'`,
      );
      return Number((row as { n: string }).n);
    };
    for (const [name, ask] of Object.entries(periodic)) {
      const before = await readRows();
      await ask();
      // The connections of the app report what they have read a moment later.
      await sleep(1_200);
      expect((await readRows()) - before, name).toBeLessThan(2_000);
    }
  },
);
