/** An older version of the app refuses the database of a newer one, in words. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/app/database.ts';
import { testFolder } from '../support/folders.ts';

test('a migration that this version does not know is named', async () => {
  const dataDir = await testFolder();
  await (await openDatabase({ dataDir, databaseUrl: null })).destroy();
  const file = new Sqlite(join(dataDir, 'app.db'));
  file.prepare('insert into kysely_migration (name, timestamp) values (?, ?)').run('099-later', '2030-01-01');
  file.close();
  await expect(openDatabase({ dataDir, databaseUrl: null })).rejects.toMatchObject({
    code: 'database_newer',
    message: expect.stringContaining('the database is from a newer version of the app (migration 099-later)') as string,
  });
});
