import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readDatabaseSettings } from '../app/config.ts';
import { openDatabase } from '../app/database.ts';
import { forgetUser, keptOfUser, type KeptOfUser } from '../app/forget-user.ts';
import { KitError } from '../contract/index.ts';
import { defineCommand } from './command.ts';

const usage = `usage: marketplace-app-kit forget-user USER_ID [--yes]: removes all that the app keeps about a user

It counts the user's launches, sessions and runs. With --yes it cancels runs that have not ended and removes everything.
Files that the app has uploaded belong to the platform, and stay there. The app may run meanwhile.

  --yes          Remove it; without this option nothing changes

DATABASE_URL     postgres://...; without it, SQLite below DATA_DIR (default data/app)`;

export default defineCommand(import.meta, {
  usage,
  options: { yes: { type: 'boolean' } },
  allowPositionals: true,
  async run({ values, positionals }) {
    const [userId, ...more] = positionals;
    if (userId === undefined || userId === '' || more.length > 0)
      throw new KitError('bad_arguments', `name one user, by the id that the platform gives\n\n${usage}`);
    const { dataDir, databaseUrl } = readDatabaseSettings(process.env);
    if (databaseUrl === null && !existsSync(join(dataDir, 'app.db')))
      throw new KitError('bad_arguments', `${dataDir} holds no database of an app: set DATA_DIR or DATABASE_URL`);
    const database = await openDatabase({ dataDir, databaseUrl });
    try {
      const kept = values.yes
        ? await forgetUser(database, userId, { isShared: databaseUrl !== null })
        : await keptOfUser(database, userId);
      console.log(`${values.yes ? 'removed' : 'the app keeps'} ${inWords(kept)} of user ${JSON.stringify(userId)}`);
      if (!values.yes && kept.launches.length + kept.runs > 0) console.log('to remove them: add --yes');
    } finally {
      await database.destroy();
    }
  },
});

function count(n: number, singular: string, many = `${singular}s`): string {
  return `${n} ${n === 1 ? singular : many}`;
}

function inWords({ launches, sessions, runs, unfinished }: KeptOfUser): string {
  const open = unfinished > 0 ? ` (${unfinished} not ended)` : '';
  return `${count(launches.length, 'launch', 'launches')}, ${count(sessions.length, 'session')} and ${count(runs, 'run')}${open}`;
}
