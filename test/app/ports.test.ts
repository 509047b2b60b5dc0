/** The app uses the objects that `createApp` is given, and makes none instead of them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import supertest from 'supertest';
import { expect, test } from 'vitest';
import { readAppConfig, Secret } from '../../src/app/config.ts';
import { createApp } from '../../src/app/create-app.ts';
import { openDatabase } from '../../src/app/database.ts';
import { createTokenSealer } from '../../src/app/launch/sealed-token.ts';
import { SqlSessionStore } from '../../src/app/launch/session-store.ts';
import { SqlLaunchStore } from '../../src/app/launch/sql-launch-store.ts';
import { localProgress } from '../../src/app/runs/run-progress.ts';
import { LocalRunQueue } from '../../src/app/runs/run-queue.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import myApp from '../../src/my-app/app.ts';
import type { HttpTransport } from '../../src/platform-client/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';

const atMs = Date.parse('2030-01-02T03:04:05Z');

async function start({ owns = false } = {}) {
  const dataDir = await testFolder();
  // Somebody's own, elsewhere.
  const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: null });
  cleanUpLater(() => database.destroy());
  const clock = { now: () => atMs };
  const stores = {
    runs: new SqlRunStore(database, () => atMs),
    launches: new SqlLaunchStore(database, createTokenSealer([new Secret('x'.repeat(32))])),
    sessions: new SqlSessionStore(database, () => atMs),
    progress: localProgress(),
    queue: new LocalRunQueue(),
  };
  const asked: string[] = [];
  const http: HttpTransport = {
    async send(call, input) {
      call.encode(input);
      asked.push(call.endpoint);
      return call.decode({ id: 'amina', name: 'Amina' });
    },
    close: () => void asked.push('closed'),
  };
  const config = readAppConfig(
    { PLATFORM_URL: 'http://127.0.0.1:9', PLATFORM_API_KEY: 'k', APP_SECRET: 's'.repeat(32), DATA_DIR: dataDir },
    () => {},
  );
  const { queue, ...some } = stores;
  const app = await createApp({
    config,
    definition: myApp,
    log: pino({ level: 'silent' }),
    confinement: await testConfinement(),
    stores: owns ? some : { ...some, queue },
    clock,
    http,
  });
  return { app, dataDir, stores, asked, database };
}

test('with every store, a clock and a transport: no database is opened, no call goes out', async () => {
  const { app, dataDir, stores, asked, database } = await start();
  const launched = await supertest(app.handler).get('/launch?token=a-token').expect(303);
  expect(asked).toEqual(['user.detail']);
  const id = /\/launches\/([^/]+)\//.exec(launched.get('location') ?? '')?.[1] ?? '';
  expect(await stores.launches.find(id)).toEqual({ id, user: { id: 'amina', name: 'Amina' }, createdAtMs: atMs });
  expect(await database.selectFrom('sessions').selectAll().execute()).toHaveLength(1);
  await supertest(app.handler)
    .get('/ready')
    .expect(503, /"database":"ok","platform":"failed/);
  expect(existsSync(join(dataDir, 'app.db'))).toBe(false);
  await app.close();
  expect(asked.at(-1)).toBe('closed');
  // The owner of a given object closes it.
  expect(await stores.launches.find(id)).not.toBeNull();
});

test('with some of them: the others are made, in the database of the settings', async () => {
  const { app, dataDir, stores } = await start({ owns: true });
  await supertest(app.handler).get('/launch?token=a-token').expect(303);
  expect(await stores.launches.begunBy('a-token')).not.toBeNull();
  expect(existsSync(join(dataDir, 'app.db'))).toBe(true);
  await app.close();
});
