/** Kept children: each serves one owner, and is not ended under its next job. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ChildPool } from '../../src/child/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';

const module = new URL('../support/process-id-job.ts', import.meta.url);

async function startPool(options: { readonly size?: number; readonly idleMs?: number } = {}) {
  const pool = new ChildPool({ confinement: await testConfinement(), folder: await testFolder(), ...options });
  cleanUpLater(() => pool.close());
  return (owner: string, waitMs = 0) => pool.run<string>({ module, input: { waitMs }, owner });
}

test('a child serves the jobs of one owner, and no other owner gets it', async () => {
  const run = await startPool({ size: 2 });
  const ofAda = await run('ada');
  const ofBen = await run('ben');
  expect(ofBen).not.toBe(ofAda);
  expect([await run('ada'), await run('ben')]).toEqual([ofAda, ofBen]);
});

test('an owner without a child gets none of the others, not even if the pool is full', async () => {
  const run = await startPool({ size: 1 });
  const children = [await run('ada'), await run('ben'), await run('ada'), await run('chloe')];
  expect(new Set(children).size).toBe(4);
});

test('a child that was idle is not ended under its next job', async () => {
  const run = await startPool({ size: 1, idleMs: 300 });
  const first = await run('ada');
  await sleep(150);
  expect(await run('ada', 600)).toBe(first);
});
