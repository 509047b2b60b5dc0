/** Requests and records of the probes: a rate limit is waited for, and no record holds a name. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { assumedProfile } from '../../src/contract/index.ts';
import { Conversation, unpaced } from '../../src/drift/target.ts';
import { cleanUpLater } from '../support/cleanup.ts';

async function platform(answers: readonly (readonly [status: number, body: object])[], pace = unpaced) {
  const waiting = [...answers];
  const server = createServer((_req, res) => {
    const [status, body] = waiting.shift()!;
    res.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' });
    res.end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  cleanUpLater(() => server.closeAllConnections());
  return new Conversation({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    apiKey: 'k'.repeat(32),
    profile: assumedProfile,
    pace,
    token: async () => 't'.repeat(32),
    approve: async () => {},
  });
}

test('what a rate limit refuses is asked again; what stays refused is not observed', async () => {
  const limited = [429, { error: 'Too Many Requests' }] as const;
  const at = await platform([limited, limited, [200, { ok: true }], ...Array.from({ length: 6 }, () => limited)]);
  expect((await at.send('a', { method: 'GET', path: '/a' })).status).toBe(200);
  expect(at.exchanges.map(({ facts }) => facts['status'])).toEqual(['200']);
  await expect(at.send('b', { method: 'GET', path: '/b' })).rejects.toThrow('limits how often it is asked (429)');
  expect(at.exchanges).toHaveLength(1);
});

test('requests keep the distance that the pace asks for', async () => {
  const requestMs = 200;
  const at = await platform(
    Array.from({ length: 3 }, () => [200, {}] as const),
    { requestMs, pollMs: 0 },
  );
  const began = performance.now();
  for (const path of ['/a', '/b', '/c']) await at.send(path, { method: 'GET', path });
  expect(performance.now() - began).toBeGreaterThanOrEqual(2 * requestMs - 5);
});

test('a record keeps what a user’s details look like, and not whose they are', async () => {
  const user = { id: 'amina', email: 'amina@example.org', name: 'Amina Okafor', organization: 'Coastal Survey' };
  const at = await platform([
    [200, user],
    [200, { owner: 'amina', by: 'Amina Okafor' }],
  ]);
  await at.call('user-detail', 'userDetail', { token: 't'.repeat(32) });
  await at.send('later', { method: 'GET', path: '/items/amina' });
  const kept = JSON.stringify(at.exchanges);
  expect(kept).not.toMatch(/amina|Okafor|Coastal/i);
  expect(at.exchanges[0]?.facts).toMatchObject({ 'body.name': 'text' });
});
