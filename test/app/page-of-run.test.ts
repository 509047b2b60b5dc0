/** Pages of the app say what helps: another launch after the end of a session, and the user's runs before the steps. */
import { expect, test, vi } from 'vitest';
import { wireProfile } from '../../src/contract/index.ts';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { startSandbox } from '../support/sandbox.ts';

async function started() {
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url);
  return { sandbox, app, ...(await launchApp(sandbox, app)) };
}

test('a run whose session has ended offers another launch, and no second try that cannot work', async () => {
  const { sandbox, session, launchId } = await started();
  const run = await session.start(smallRun);
  await session.waitFor(run.id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `launches/${launchId}/revoke`);
  await session.waitFor(run.id, 'FAILED');
  const page = await (await session.get(`runs/${run.id}`)).text();
  expect(page).toContain(`href="${sandbox.url}" target="_top">Launch the app again</a>`);
  expect(page).not.toContain('id="retry"');
});

test('the minutes left to decide do not depend on the clock of the platform', async () => {
  const { sandbox, session } = await started();
  await sandbox.control('POST', 'clock', { advanceMs: 50 * 60_000 });
  const { id } = await session.start(smallRun);
  await session.waitFor(id, 'AWAITING_APPROVAL');
  const page = await (await session.get(`runs/${id}`)).text();
  expect(page).toMatch(/the request expires in (29|30) min/);
});

test('another failed run offers a second try', async () => {
  const { sandbox, session } = await started();
  const run = await session.start(smallRun);
  const { operationId } = await session.waitFor(run.id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/reject`);
  await session.waitFor(run.id, 'REJECTED');
  const page = await (await session.get(`runs/${run.id}`)).text();
  expect([page.includes('id="retry"'), page.includes('Launch the app again')]).toEqual([true, false]);
});

test('a page that is refused for want of a session leads to the marketplace', async () => {
  const { sandbox, app } = await started();
  const answer = await fetch(`${app.url}/launch?token=unknown`, { headers: { accept: 'text/html' } });
  expect(answer.status).toBe(403);
  expect(await answer.text()).toContain(`href="${sandbox.url}" target="_top">Open the marketplace</a>`);
});

test("the user's runs stand before the steps, and a user without runs sees the steps first", async () => {
  const { session } = await started();
  const order = async () => {
    const page = await (await session.get('')).text();
    return page.indexOf('id="runs-title"') < page.indexOf('id="new-run"') ? 'runs' : 'steps';
  };
  expect(await order()).toBe('steps');
  await session.start(smallRun);
  expect(await order()).toBe('runs');
});

test('the failure of a call leads to that call in the inspector', async () => {
  const { sandbox, session, launchId } = await started();
  await sandbox.control('POST', 'faults', { launchId, endpoint: 'operation.create', effect: { status: 403 } });
  const { id } = await session.start(smallRun);
  await session.waitFor(id, 'FAILED');
  const page = await (await session.get(`runs/${id}`)).text();
  const [, link = ''] = /the platform's request <a href="([^"]+)"/.exec(page) ?? [];
  expect(link.startsWith(`${sandbox.url}/requests/`)).toBe(true);
  const inspector = await fetch(link);
  expect(new URL(inspector.url).pathname).toBe(`/launches/${launchId}`);
  expect(await inspector.text()).toMatch(/<strong>operation\.create<\/strong> <span class="pill warn">403<\/span>/);
  expect((await fetch(`${sandbox.url}/requests/unknown`)).status).toBe(404);
});

test('an upload without an answer shows no time that is left', async () => {
  const { sandbox, session, launchId } = await started();
  await sandbox.control('POST', 'faults', {
    launchId,
    endpoint: 'upload.chunk',
    times: 1_000,
    effect: { reset: true },
  });
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const page = await vi.waitFor(
    async () => {
      const text = await (await session.get(`runs/${id}`)).text();
      expect(text).toContain("waiting for the platform's answer");
      return text;
    },
    { timeout: 60_000, interval: 50 },
  );
  expect(page).not.toContain('0 s left');
});

test('a platform whose pages are named otherwise has no page of a request', () => {
  const pages = { approvals: '/reviews' };
  expect(wireProfile({ name: 'x' }).pages.request?.('a/b')).toBe('/requests/a%2Fb');
  expect(wireProfile({ name: 'x', pages }).pages.request).toBeNull();
  const named = wireProfile({ name: 'x', pages: { ...pages, request: '/log?id=:requestId' } });
  expect(named.pages.request?.('a/b')).toBe('/log?id=a%2Fb');
});
