// @module-tag all
/** A log reader that stalls does not stop the process. Lines are dropped, counted and reported. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot } from '../support/folders.ts';

const program = `
  import { logOutput } from '${new URL('../../src/server/index.ts', import.meta.url).href}';
  const output = logOutput({ maxWaitingBytes: 100_000 });
  let ticks = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < 200; i++) output.write(JSON.stringify({ msg: 'x'.repeat(500) }) + '\\n');
    ticks += 1;
    process.stdout.write(ticks + ' ' + output.droppedLines + '\\n');
  }, 20);
  process.on('SIGUSR2', () => clearInterval(timer));
  process.on('SIGTERM', async () => {
    clearInterval(timer);
    output.write(JSON.stringify({ msg: 'the last line' }) + '\\n');
    await output.flush();
    process.exit(0);
  });
  setInterval(() => {}, 1000);
`;

/** Starts the program. Nobody reads its log. */
function startUnread() {
  const child = spawn(
    process.execPath,
    ['--import', join(projectRoot, 'scripts/preload.mjs'), '--input-type=module-typescript', '-e', program],
    { stdio: ['ignore', 'pipe', 'pipe'], cwd: projectRoot },
  );
  cleanUpLater(() => child.kill('SIGKILL'));
  child.stderr.pause();
  return child;
}

test('the process continues, reports dropped lines, and stops on SIGTERM', async () => {
  const child = startUnread();
  let last = '';
  child.stdout.on('data', (bytes: Buffer) => (last = bytes.toString().trim().split('\n').at(-1)!));
  const counts = () => last.split(' ').map(Number);
  await vi.waitFor(() => expect(counts()[1]).toBeGreaterThan(1_000), { timeout: 60_000 });
  const [ticks = 0, dropped = 0] = counts();
  // It continues while nobody reads.
  await vi.waitFor(() => expect(counts()[0]).toBeGreaterThan(ticks + 20), { timeout: 60_000 });
  // The reader is back.
  child.kill('SIGUSR2');
  let text = '';
  child.stderr.on('data', (bytes: Buffer) => (text += bytes.toString()));
  child.stderr.resume();
  await sleep(500);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number];
  expect(code).toBe(0);
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { msg: string; droppedLines?: number });
  expect(lines.at(-1)).toEqual({ msg: 'the last line' });
  const told = lines.reduce((sum, { droppedLines = 0 }) => sum + droppedLines, 0);
  expect(told).toBeGreaterThanOrEqual(dropped);
});

test('the process stops on SIGTERM even if nobody reads its log', async () => {
  const child = startUnread();
  let isDropping = false;
  child.stdout.on('data', (bytes: Buffer) => (isDropping ||= / [1-9]\d*\n/.test(bytes.toString())));
  await vi.waitFor(() => expect(isDropping).toBe(true), { timeout: 60_000 });
  const from = performance.now();
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number];
  expect(code).toBe(0);
  expect(performance.now() - from).toBeLessThan(5_000);
});
