/** A new version of the app takes over runs of the old one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import myApp from '../../src/my-app/app.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

test('in the middle of the create call, with other words: the same operation, and the run goes on', async () => {
  const sandbox = await startSandbox();
  const dataDir = await testFolder();
  const old = await startApp(sandbox.url, { dataDir });
  const { session, launchId } = await launchApp(sandbox, old);
  await sandbox.control('POST', 'faults', {
    launchId,
    endpoint: 'operation.create',
    effect: { dropResponse: true },
    times: 1_000,
  });
  const { id } = await session.start(smallRun);
  const operations = async () => (await sandbox.control('GET', `launches/${launchId}`)).operations;
  await vi.waitFor(async () => expect(await operations()).toHaveLength(1), { timeout: 300_000, interval: 100 });
  await old.close();
  await sandbox.control('DELETE', 'faults');
  const steps = myApp.steps.map((step) => ({ ...step, title: `${step.title}, anew`, description: 'Other words.' }));
  const next = await startApp(sandbox.url, { dataDir, definition: { ...myApp, steps } });
  const view = async () => {
    const address = new URL(`${new URL(session.home).pathname}api/runs/${id}`, next.url);
    const { state } = (await (await fetch(address, { headers: { cookie: session.cookie } })).json()) as {
      state: string;
    };
    return state;
  };
  while ((await view()) === 'CREATED') await sleep(100);
  expect(await view()).toBe('AWAITING_APPROVAL');
  expect(await operations()).toHaveLength(1);
});
