import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from 'marketplace-app-kit/testing';
import { startMyApp } from './my-app.ts';

test('after the approval the report is delivered, and every rule of the platform is kept', async () => {
  const platform = await startSandbox();
  const app = await startMyApp({ platformUrl: platform.url, apiKey: platform.apiKey });
  onTestFinished(app.stop);
  const { launchId, launchUrl } = await platform.launch(app.launchUrl);
  await fetch(launchUrl);
  await platform.approve({ launchId });

  const isDelivered = async () =>
    (await platform.trace(launchId)).some(({ endpoint, status }) => endpoint === 'upload.complete' && status === 200);
  await expect.poll(isDelivered, { timeout: 20_000 }).toBe(true);
  expect((await platform.verdict(launchId)).rules.filter(({ result }) => result === 'failed')).toEqual([]);
});

test('a rejected run does nothing', async () => {
  const platform = await startSandbox();
  const app = await startMyApp({ platformUrl: platform.url, apiKey: platform.apiKey });
  onTestFinished(app.stop);
  const { launchId, launchUrl } = await platform.launch(app.launchUrl);
  await fetch(launchUrl);
  await platform.reject({ launchId });

  const hasHeard = async () =>
    (await platform.trace(launchId)).some(({ detail }) => detail['operationStatus'] === 'REJECTED');
  await expect.poll(hasHeard, { timeout: 20_000 }).toBe(true);
  expect((await platform.trace(launchId)).filter(({ endpoint }) => endpoint.startsWith('upload.'))).toEqual([]);
});
