/** Events by which pages of the app learn of changes. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { expect, test, vi } from 'vitest';
import { openDatabase } from '../../src/app/database.ts';
import { changeEvents, createStreams, type Look } from '../../src/app/pages/change-events.ts';
import { SqlRunStore } from '../../src/app/runs/sql-run-store.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';

/** Serves events of subjects by their names in the address. */
async function serve(look: (subject: string) => Promise<Look>): Promise<string> {
  const app = express().use((req, _res, next) => {
    req.log = { warn: vi.fn() } as unknown as typeof req.log;
    next();
  });
  app.get(
    '/:subject',
    changeEvents(createStreams(), async (params) => {
      const { subject } = params as { subject: string };
      return { owner: subject, subject, look: () => look(subject) };
    }),
  );
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Opens a stream. Returns the number of changes so far. */
async function listen(address: string): Promise<() => number> {
  const leaving = new AbortController();
  cleanUpLater(() => leaving.abort());
  const { body } = await fetch(address, { signal: leaving.signal });
  let text = '';
  void body!
    .pipeThrough(new TextDecoderStream())
    .pipeTo(new WritableStream({ write: (part) => void (text += part) }))
    .catch(() => {});
  return () => text.split('event: change').length - 1;
}

test('a page hears of each change, and of time only as often as it needs', async () => {
  let number = 0;
  const looks = vi.fn();
  const address = await serve(async (subject) => {
    looks();
    return { seen: String(number), maxAgeMs: subject === 'old' ? 1_000 : null };
  });
  const [still, old] = [await listen(`${address}/still`), await listen(`${address}/old`)];
  const within = { timeout: 30_000, interval: 20 };
  await vi.waitFor(() => expect(old()).toBeGreaterThan(3), within);
  expect(still()).toBe(1);
  number += 1;
  await vi.waitFor(() => expect(still()).toBe(2), within);
});

test('the pages of many launches cost two queries a look', async () => {
  const database = await openDatabase({ dataDir: await testFolder(), databaseUrl: null });
  cleanUpLater(() => database.destroy());
  const queries = vi.fn();
  const counted = database.withPlugin({
    transformQuery({ node }) {
      queries();
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const store = new SqlRunStore(counted, Date.now);
  let looks = 0;
  const address = await serve(async (subject) => {
    await Promise.all([store.changesOf(subject), store.lastChangeOf(subject)]);
    looks += 1;
    return { seen: '', maxAgeMs: null };
  });
  const pages = 50;
  for (let i = 0; i < pages; i++) await listen(`${address}/launch-${i}`);
  await vi.waitFor(() => expect(looks).toBeGreaterThan(pages * 4), { timeout: 60_000, interval: 50 });
  // A look while pages still open has fewer of them.
  const [looksBefore, queriesBefore] = [looks, queries.mock.calls.length];
  await vi.waitFor(() => expect(looks).toBeGreaterThan(looksBefore + pages * 4), { timeout: 60_000, interval: 50 });
  const perLook = (queries.mock.calls.length - queriesBefore) / ((looks - looksBefore) / pages);
  expect(perLook).toBeLessThan(4);
});
