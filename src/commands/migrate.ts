import { readDatabaseSettings } from '../app/config.ts';
import { openDatabase } from '../app/database.ts';
import { messageOf } from '../files/index.ts';
import { ownFolder } from '../server/index.ts';
import { defineCommand } from './command.ts';

const usage = `usage: marketplace-app-kit migrate: creates the tables of your app, or brings them up to date

The app does the same at its start. Use this command if a deployment changes the database before it starts the app.

DATABASE_URL     postgres://...; without it, SQLite below DATA_DIR (default data/app)`;

export default defineCommand(import.meta, {
  usage,
  options: {},
  async run() {
    process.umask(0o077);
    const { dataDir, databaseUrl } = readDatabaseSettings(process.env);
    // One process owns a data folder: a migration must not change tables below an app that runs.
    const leaveFolder = databaseUrl === null ? ownFolder(dataDir) : () => {};
    const database = await openDatabase({ dataDir, databaseUrl });
    await database.destroy();
    leaveFolder();
    if (databaseUrl !== null) {
      const { PgBossRunQueue } = await import('../app/runs/pg-boss-run-queue.ts');
      const warn = (facts: object, message: string) =>
        console.error('err' in facts ? `${message}: ${messageOf(facts.err)}` : message);
      await (await PgBossRunQueue.open(databaseUrl, { supervises: false, log: { warn } })).close();
    }
    console.log('the database is up to date');
  },
});
