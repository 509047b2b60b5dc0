/** Queries that run again and again read no more than they need, however many runs there are. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/app/database.ts';
import { testFolder } from '../support/folders.ts';

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
