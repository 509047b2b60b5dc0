/** Classification of PostgreSQL errors: of the query, or of the database. */
import { connect, createServer } from 'node:net';
import express from 'express';
import supertest from 'supertest';
import { describe, expect, test } from 'vitest';
import { asDatabaseError, DatabaseUnavailableError } from '../../src/app/database-unavailable.ts';
import { openDatabase, reasonOf } from '../../src/app/database.ts';
import { errorBoundary } from '../../src/app/web/errors.ts';
import { freePort } from '../../src/commands/free-port.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { startPostgres } from '../support/postgres.ts';

const withCode = (code: string) => Object.assign(new Error(code), { code });

test.each([
  ['28P01', 'a wrong password'],
  ['28000', 'a role that may not log in'],
  ['3D000', 'a missing database'],
  ['42501', 'a missing permission'],
  ['53100', 'a full disk'],
  ['57P01', 'a shutdown'],
])('%s, %s: the app waits for the database', (code) => {
  expect(asDatabaseError(withCode(code))).toBeInstanceOf(DatabaseUnavailableError);
});

test.each([
  ['42601', 'a syntax error'],
  ['42P01', 'a missing table'],
  ['23505', 'a duplicate key'],
  ['22P02', 'invalid data'],
])('%s, %s: an error of the query', (code) => {
  const error = withCode(code);
  expect(asDatabaseError(error)).toBe(error);
});

describe('a database that is away at the start', () => {
  test('is waited for, and told of once', needing('postgresql'), async () => {
    const cluster = await startPostgres();
    const database = new URL(await cluster.create());
    const proxy = createServer((socket) => {
      const there = connect(Number(database.port), database.hostname);
      socket.on('error', () => {}).pipe(there);
      there.on('error', () => {}).pipe(socket);
      cleanUpLater(() => void socket.destroy());
    });
    cleanUpLater(() => void proxy.close());
    const port = await freePort();
    const reasons: string[] = [];
    const address = new URL(database);
    address.port = String(port);
    const opening = openDatabase({
      ...{ dataDir: await testFolder(), databaseUrl: address.href },
      waitMs: 300_000,
      onWait: (reason) => {
        reasons.push(reason);
        proxy.listen(port, '127.0.0.1');
      },
    });
    await (await opening).destroy();
    expect(reasons).toEqual([expect.stringContaining('ECONNREFUSED')]);
  });

  test('is an error when the wait is over, without its password', async () => {
    const databaseUrl = `postgres://u:hidden@127.0.0.1:${await freePort()}/d`;
    const opened = openDatabase({ dataDir: await testFolder(), databaseUrl, waitMs: 1_500 });
    await expect(opened).rejects.toMatchObject({ code: 'database_unavailable' });
    await expect(opened).rejects.not.toThrow('hidden');
  });
});

test('if the database is away, the page says so and Retry-After is set', async () => {
  const app = express();
  app.use((req, _res, next) => {
    Object.assign(req, { log: { error: () => {} } });
    next();
  });
  app.get('/', () => {
    throw new DatabaseUnavailableError(withCode('57P01'));
  });
  app.use(errorBoundary(({ code, message }) => `${code}: ${message}`));
  const { status, headers, text } = await supertest(app).get('/');
  expect([status, headers['retry-after'], text]).toEqual([
    503,
    '5',
    'database_away: the database does not answer at the moment; nothing is lost',
  ]);
});

test('the message names a wait for a free connection', () => {
  const error = new DatabaseUnavailableError(new Error('timeout exceeded when trying to connect'));
  expect(error.message).toMatch(/no connection to the database was free within 5 s/);
});

test.each([
  ['28P01', '28P01: the password is wrong'],
  ['SQLITE_FULL', 'SQLITE_FULL: the disk is full'],
  ['XX000', 'XX000'],
])('%s in words', (code, words) => {
  expect(reasonOf(withCode(code))).toBe(words);
});
