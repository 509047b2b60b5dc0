import { expect } from 'vitest';
import { launchApp, smallRun, startApp } from './app.ts';
import { geoTiff } from './geotiff.ts';
import { adminKey, apiKey, startSandbox } from './sandbox.ts';

const hostile = `<img src=x onerror="document.title='hacked'"> & "quotes" </script><script>document.title='hacked'</script>`;

/** A sandbox and the app with something on every page. Default: its names are hostile. */
export async function populated({ name = hostile } = {}) {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url, { env: { EMBEDDED_IN: sandbox.url, ADMIN_KEY: adminKey } });
  await sandbox.control('POST', 'users', {
    id: 'mallory',
    name,
    email: 'm@example.org',
    organization: name,
  });
  await sandbox.control('POST', 'apps', {
    id: 'reference-app',
    name,
    description: name,
    launchUrl: `${app.url}/launch`,
  });
  const { session, launchId } = await launchApp(sandbox, app, { userId: 'mallory' });
  const run = await session.start(smallRun);
  const { operationId } = await session.waitFor(run.id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(run.id, 'COMPLETED');
  const waiting = await session.start(smallRun);
  await session.waitFor(waiting.id, 'AWAITING_APPROVAL');
  const { token } = await sandbox.launch();
  await sandbox.app('POST', `/operation/${token}`, {
    body: { name, description: name, parameters: { [name]: name } },
  });
  const form = new FormData();
  form.append(
    'file',
    new Blob([new Uint8Array(geoTiff({ width: 64, height: 64, value: (x, y) => x + y }))]),
    'scène "1" <b>.tif',
  );
  const uploaded = await sandbox.request('POST', '/public/file/upload?sourceType=PANCHROMATIC', {
    body: form,
    headers: { 'x-api-key': apiKey },
  });
  expect(uploaded.status).toBe(200);
  return { sandbox, app, session, launchId, runIds: [run.id, waiting.id] as const };
}
