/** `leftOver` finds each kind of resource that a test file leaves open. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../support/folders.ts';
import { inUse, leftOver } from '../support/left-over.ts';

/** Each kind with a function that opens such a resource, and returns a function that closes it. */
const kinds: readonly [what: string, begin: () => Promise<() => unknown>][] = [
  [
    'Timeout',
    async () => {
      // Timers of Vitest and of earlier files in this process may end meanwhile, which would hide a single one.
      const timers = Array.from({ length: 20 }, () => setInterval(() => {}, 60_000));
      return () => timers.forEach((timer) => clearInterval(timer));
    },
  ],
  [
    'TCPServerWrap',
    async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return () => server.close();
    },
  ],
  [
    'ProcessWrap',
    async () => {
      // Kept children of earlier files may end meanwhile, too.
      const children = Array.from({ length: 8 }, () => spawn('sleep', ['60'], { stdio: 'ignore' }));
      return () => children.forEach((child) => child.kill('SIGKILL'));
    },
  ],
  [
    'open file',
    async () => {
      const file = await open(join(await testFolder(), 'open'), 'w');
      return () => file.close();
    },
  ],
  [
    'listener of SIGUSR2',
    async () => {
      const listener = () => {};
      process.on('SIGUSR2', listener);
      return () => process.off('SIGUSR2', listener);
    },
  ],
];

test.each(kinds)('%s', async (what, begin) => {
  const before = inUse();
  const end = await begin();
  expect((await leftOver(before, 50)).filter((line) => line.includes(what))).toHaveLength(1);
  await end();
  expect(await leftOver(before)).toEqual([]);
});
