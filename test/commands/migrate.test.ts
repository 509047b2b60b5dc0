/** `migrate` makes the tables of the app in both databases. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { startCommand } from '../support/processes.ts';

async function migrate(env: Readonly<Record<string, string>>): Promise<string> {
  const { output, exited } = startCommand('migrate', [], env);
  return `${await exited}: ${output()}`;
}

test('migrate creates the SQLite database below DATA_DIR', async () => {
  const dataDir = await testFolder();
  for (let n = 0; n < 2; n++) expect(await migrate({ DATA_DIR: dataDir })).toBe('0: the database is up to date\n');
  expect(existsSync(join(dataDir, 'app.db'))).toBe(true);
});

test('migrate creates the tables of the app and of the queue in PostgreSQL', needing('postgresql'), async () => {
  const cluster = await startPostgres();
  const url = await cluster.create();
  for (let n = 0; n < 2; n++) expect(await migrate({ DATABASE_URL: url })).toBe('0: the database is up to date\n');
  const rows = await query(url, "select table_schema || '.' || table_name as name from information_schema.tables");
  expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['public.runs', 'pgboss.job']));
});

test('migrate reports why a database refuses, without the password', needing('postgresql'), async () => {
  const cluster = await startPostgres();
  const url = new URL(await cluster.create());
  url.pathname = '/nobody';
  url.password = 'a-secret-of-mine';
  const said = await migrate({ DATABASE_URL: url.href });
  expect(said).toMatch(/^1: DATABASE_URL: the app could not open the database \(/);
  expect(said).not.toContain('a-secret-of-mine');
});
