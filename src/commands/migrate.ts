import { readDatabaseSettings } from '../app/config.ts';
import { openDatabase } from '../app/database.ts';
import { defineCommand } from './command.ts';

const usage = `usage: marketplace-app-kit migrate: creates the tables of your app, or brings them up to date

The app does the same at its start. Use this command if a deployment changes the database before it starts the app.

DATABASE_URL     postgres://...; without it, SQLite below DATA_DIR (default data/app)`;

export default defineCommand(import.meta, {
  usage,
  options: {},
  async run() {
    const { dataDir, databaseUrl } = readDatabaseSettings(process.env);
    const database = await openDatabase({ dataDir, databaseUrl });
    await database.destroy();
    if (databaseUrl !== null) {
      const { PgBossRunQueue } = await import('../app/runs/pg-boss-run-queue.ts');
      const log = { warn: (_facts: object, message: string) => console.error(message) };
      await (await PgBossRunQueue.open(databaseUrl, { supervises: false, log })).close();
    }
    console.log('the database is up to date');
  },
});
