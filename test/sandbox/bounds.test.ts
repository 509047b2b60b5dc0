/** Actions of others cost the sandbox's callers only a moment. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { Request, Response } from 'express';
import { expect, test, vi } from 'vitest';
import { applyFault } from '../../src/sandbox/call/apply-fault.ts';
import { callContext } from '../../src/sandbox/web/call-context.ts';
import { startSandbox } from '../support/sandbox.ts';

test('another process that holds the database: 503 for a write, at once, and reads go on', async () => {
  const sandbox = await startSandbox({ isBroken: true });
  const other = new Sqlite(join(sandbox.dataDir, 'sandbox.db'));
  other.exec('begin immediate');
  try {
    const launch = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"userId": "amina"}' };
    const writing = await fetch(`${sandbox.url}/sandbox/launches`, launch);
    expect([writing.status, await writing.json()]).toMatchObject([503, { code: 'busy' }]);
    expect((await fetch(`${sandbox.url}/health`)).status).toBe(200);
    other.exec('rollback');
    expect((await fetch(`${sandbox.url}/sandbox/launches`, launch)).status).toBe(201);
  } finally {
    other.close();
  }
});

test('a fault that delays an answer outlasts the limit of an idle connection', async () => {
  for (const effect of [{ delayMs: 1 }, { slowBodyMs: 1 }]) {
    const setTimeout = vi.fn();
    const req = { socket: { setTimeout, destroyed: false }, get: () => undefined } as unknown as Request;
    const nothing = () => {};
    const res = {
      set: nothing,
      json: nothing,
      end: nothing,
      write: nothing,
      writeHead: nothing,
    } as unknown as Response;
    callContext(req, res, nothing);
    expect(await applyFault(effect, 'user.detail', req, res)).toBe(true);
    expect(setTimeout).toHaveBeenCalledWith(0);
  }
});

test('folders of scenes that nobody finishes keep nobody else out for longer than a minute', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const sandbox = await startSandbox();
    const begin = async () => {
      const body = new URLSearchParams({ name: 'scene-of-mine' });
      const headers = { origin: sandbox.url, 'sec-fetch-site': 'same-origin' };
      return (await fetch(`${sandbox.url}/files/scenes`, { method: 'POST', body, headers })).status;
    };
    for (let n = 0; n < 20; n++) expect(await begin()).toBe(201);
    expect(await begin()).toBe(503);
    vi.advanceTimersByTime(61_000);
    expect(await begin()).toBe(201);
  } finally {
    vi.useRealTimers();
  }
});
