// @module-tag all
/** Calls that a full disk has no room for wait in memory; a stop that leaves some of them says that the trace has a gap. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { SandboxClock } from '../../src/sandbox/clock.ts';
import { openSandboxDatabase } from '../../src/sandbox/database.ts';
import { unattributed } from '../../src/sandbox/referee/call-writer.ts';
import { Trace } from '../../src/sandbox/referee/trace.ts';
import { callContext } from '../../src/sandbox/web/call-context.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { makeFolder } from '../support/folders.ts';

const asked = 300;

async function startTraced() {
  const database = openSandboxDatabase(await makeFolder());
  cleanUpLater(() => database.close());
  const open = () =>
    new Trace(database, new SandboxClock(database, Date.now), pino({ level: 'silent' }), (value) => value);
  const trace = open();
  const app = express()
    .use(callContext)
    .get('/:place', (req, res) => {
      trace.begin(req, res, 'inference.models', { launchId: null, operation: null, detail: {} });
      res.json({});
    });
  const server = app.listen(0, '127.0.0.1');
  cleanUpLater(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call = async (place: string) => (await fetch(`${url}/${place}`, { headers: { connection: 'close' } })).text();
  const places = () => trace.list(unattributed).map(({ path }) => path.slice(1));
  const roomFor = (pages: number) =>
    database.pragma(`max_page_count = ${Number(database.pragma('page_count', { simple: true })) + pages}`);
  return { trace, open, call, places, roomFor };
}

test('the first are written as soon as there is room for them, the others later, in order, each once', async () => {
  const { call, places, roomFor } = await startTraced();
  roomFor(0);
  const wanted = Array.from({ length: asked }, (_, i) => `p${i}`);
  for (const place of wanted) await call(place);
  const [none, some] = [places(), (roomFor(25), places())];
  expect(none.length).toBeLessThan(asked / 2);
  expect(some.length).toBeGreaterThan(none.length);
  expect(some.length).toBeLessThan(asked);
  expect(some).toEqual(wanted.slice(0, some.length));
  roomFor(1_000);
  expect(places()).toEqual(wanted);
});

test('a stop with calls that were not written is a gap; one without is none', async () => {
  const { trace, open, call, roomFor } = await startTraced();
  roomFor(0);
  for (let i = 0; i < asked; i++) await call('during');
  trace.close();
  const second = open();
  expect(second.missing('-').gaps).toHaveLength(1);
  second.close();
  expect(open().missing('-').gaps).toHaveLength(1);
});
