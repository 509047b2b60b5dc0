/** Browsers and the app reach the platform by two addresses, as between containers. */
import { expect, test } from 'vitest';
import { launchApp, startApp } from '../support/app.ts';
import { startSandbox } from '../support/sandbox.ts';

/** Nobody listens there: a call to it fails. */
const ofBrowsers = 'http://127.0.0.1:9';

test('links lead to the address of browsers, and data is fetched from the address of the app', async () => {
  const sandbox = await startSandbox({ seed: 'demo', env: { PUBLIC_URL: ofBrowsers } });
  const app = await startApp(sandbox.url, { env: { PLATFORM_PUBLIC_URL: ofBrowsers } });
  const { session } = await launchApp(sandbox, app);
  const items = [{ collectionId: 'olinda-coast', itemId: 'olinda-landsat7' }];
  const { id } = await session.start({ stepId: 'cog', input: { type: 'platform', items } });
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  expect(await (await session.get(`runs/${id}`)).text()).toContain(`href="${ofBrowsers}/approvals"`);
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const { inputs } = (await session.waitFor(id, 'COMPLETED')).provenance!;
  expect(inputs[0]?.files).toHaveLength(1);
  expect(await (await session.get(`runs/${id}`)).text()).toContain(`href="${ofBrowsers}/catalog/olinda-coast/`);
});
