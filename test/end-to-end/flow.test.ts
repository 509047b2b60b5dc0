/** The whole flow over real sockets: app and sandbox, as users have them. */
import { access, appendFile, readdir, rm } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { externalAppEndpoints } from '../../src/contract/index.ts';
import badSteps from '../support/bad-steps.ts';
import {
  fetchedDigest,
  launchApp,
  openSession,
  sessionOf,
  smallRun,
  startApp,
  uploadCalls,
  workFolders,
  type StartAppOptions,
} from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { onlyInAll } from '../support/tags.ts';

const minute = 60_000;

async function start(options: StartAppOptions & { renewPolicy?: 'extend' | 'rotate' } = {}) {
  const sandbox = await startSandbox();
  const { renewPolicy, ...appOptions } = options;
  const app = await startApp(sandbox.url, { ...appOptions, env: { UPLOAD_PART_BYTES: '5000', ...appOptions.env } });
  const launched = await launchApp(sandbox, app, { renewPolicy });
  const { launchId, session } = launched;
  return {
    sandbox,
    app,
    ...launched,
    fault: (endpoint: string, effect: object, more: object = {}) =>
      sandbox.control('POST', 'faults', { launchId, endpoint, effect, ...more }),
    /** Starts a run and waits until its operation waits for a decision. */
    requested: async (wanted: object = smallRun) => {
      const { id } = await session.start(wanted);
      const run = await session.waitFor(id, 'AWAITING_APPROVAL');
      const decide = (what: 'approve' | 'reject') => sandbox.control('POST', `operations/${run.operationId}/${what}`);
      return { id, operationId: run.operationId, decide };
    },
  };
}

/** Requires of every run that went well: the order of states and calls, one file, and its bytes. */
async function expectDelivered(
  { sandbox, launchId, session }: Awaited<ReturnType<typeof start>>,
  runId: string,
): Promise<void> {
  const run = await session.waitFor(runId, 'COMPLETED');
  expect(run.history.map(({ state }) => state)).toEqual([
    'CREATED',
    'AWAITING_APPROVAL',
    'APPROVED',
    'PROCESSING',
    'UPLOADING',
    'COMPLETED',
  ]);
  expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
  const { uploads, operations } = await sandbox.control('GET', `launches/${launchId}`);
  expect(operations).toHaveLength(1);
  expect(uploads.filter(({ fileId }) => fileId !== null)).toHaveLength(1);
  const calls = (await sandbox.trace(launchId)).filter(({ delivered, status }) => delivered && status === 200);
  const first = (endpoint: string) => calls.findIndex((call) => call.endpoint === endpoint);
  const approvedAt = calls.findIndex(({ detail }) => detail['operationStatus'] === 'APPROVED');
  expect(first('user.detail')).toBeLessThan(first('operation.create'));
  expect(first('operation.create')).toBeLessThan(approvedAt);
  expect(calls[approvedAt]!.endpoint).toBe('operation.status');
  expect(approvedAt).toBeLessThan(first('upload.initiate'));
  expect(calls.slice(approvedAt + 1).every(({ endpoint }) => endpoint !== 'operation.status')).toBe(true);
  const status = await sandbox.request('GET', `/public/file/status/${run.file?.fileId}`, {
    headers: { 'x-api-key': apiKey },
  });
  expect(['QUEUED', 'IN_PROGRESS', 'COMPLETED']).toContain(status.body.status);
}

/** Not by `expect.poll`, which tests that run beside others do not have. */
const untilEmpty = (folder: string) =>
  vi.waitFor(async () => expect(await readdir(folder)).toEqual([]), { timeout: 900_000, interval: 50 });

describe.concurrent('decisions', () => {
  test('approved: the six states in order, and the platform has the very bytes', async () => {
    const flow = await start();
    const { id, decide } = await flow.requested();
    await decide('approve');
    await expectDelivered(flow, id);
    const parts = (await flow.sandbox.control('GET', `launches/${flow.launchId}`)).uploads[0]!.parts;
    expect(parts.length).toBeGreaterThan(2);
    // After the commit that ends the run.
    await untilEmpty(workFolders(flow.app.dataDir));
  });

  test.each(['reject', 'expire'] as const)(
    '%s: nothing is processed, and nothing of the upload group is called',
    async (decision) => {
      const { sandbox, app, launchId, session, requested } = await start();
      const { id, decide } = await requested();
      if (decision === 'reject') await decide('reject');
      else await sandbox.advance(30 * minute, launchId);
      const run = await session.waitFor(id, 'REJECTED', 'EXPIRED');
      expect(run.state).toBe(decision === 'reject' ? 'REJECTED' : 'EXPIRED');
      const before = (await sandbox.trace(launchId)).length;
      await sleep(2500); // as long as a poll would take to come
      expect(await uploadCalls(sandbox, launchId)).toBe(0);
      expect((await sandbox.trace(launchId)).length).toBe(before);
      await expect(access(`${workFolders(app.dataDir)}/${id}`)).rejects.toThrow();
      expect(run.history.map(({ state }) => state)).not.toContain('PROCESSING');
    },
  );

  test('a retry after EXPIRED makes a new operation', { tags: [onlyInAll] }, async () => {
    const { sandbox, launchId, session, requested } = await start();
    const { id, operationId } = await requested();
    await sandbox.advance(30 * minute, launchId);
    await session.waitFor(id, 'EXPIRED');
    const again = (await (await session.post(`api/runs/${id}/retry`)).json()) as { id: string };
    const retried = await session.waitFor(again.id, 'AWAITING_APPROVAL');
    expect(retried.operationId).not.toBe(operationId);
    await sandbox.control('POST', `operations/${retried.operationId}/approve`);
    await session.waitFor(again.id, 'COMPLETED');
  });

  test('while nobody decides, polls come 2 to 5 s apart', { tags: [onlyInAll] }, async () => {
    const { sandbox, launchId, session, requested } = await start();
    const { id, decide } = await requested();
    const polls = async () => (await sandbox.trace(launchId)).filter(({ endpoint }) => endpoint === 'operation.status');
    await expect.poll(async () => (await polls()).length, { interval: 200 }).toBeGreaterThan(3);
    await decide('approve');
    await session.waitFor(id, 'COMPLETED');
    const times = (await polls()).map(({ at }) => Date.parse(at));
    for (const [i, at] of times.slice(1).entries()) expect(at - times[i]!).toBeGreaterThanOrEqual(1_990);
  });
});

describe.concurrent('the token ends while the run is under way', () => {
  test.each(['extend', 'rotate'] as const)(
    '%s: expired before the upload; it is renewed, and the upload goes on with what was returned',
    async (renewPolicy) => {
      const flow = await start({ renewPolicy });
      const { id, decide } = await flow.requested();
      await decide('approve');
      await flow.session.waitFor(id, 'APPROVED', 'PROCESSING');
      await flow.sandbox.advance(62 * minute, flow.launchId);
      await expectDelivered(flow, id);
      const renewals = (await flow.sandbox.trace(flow.launchId)).filter(({ endpoint }) => endpoint === 'token.renew');
      expect(renewals.map(({ status, detail }) => [status, detail['rotated']])).toEqual([
        [200, renewPolicy === 'rotate'],
      ]);
    },
  );

  test('rotate: the answer to the renewal is lost, and nobody is locked out', async () => {
    const flow = await start({ renewPolicy: 'rotate' });
    const { id, decide } = await flow.requested();
    await flow.fault('token.renew', { dropResponse: true });
    await decide('approve');
    await flow.session.waitFor(id, 'APPROVED', 'PROCESSING');
    await flow.sandbox.advance(62 * minute, flow.launchId);
    await expectDelivered(flow, id);
    expect((await flow.sandbox.control('GET', 'faults')).faults[0]!.fired).toBe(1);
  });

  test('revoked: the run fails, and says what its user can do', async () => {
    const { sandbox, launchId, session, requested } = await start();
    const { id } = await requested();
    await sandbox.control('POST', `launches/${launchId}/revoke`);
    const run = await session.waitFor(id, 'FAILED');
    expect(run.failure).toMatchObject({
      code: 'token_revoked',
      advice: expect.stringContaining('Launch the app again') as string,
    });
    expect(run.failure?.requestId).toMatch(/./);
  });

  test('over for good: the run fails, and says what its user can do', async () => {
    const { sandbox, launchId, session, requested } = await start();
    const { id, decide } = await requested();
    await decide('approve');
    await session.waitFor(id, 'APPROVED', 'PROCESSING');
    await sandbox.advance(66 * minute, launchId);
    expect((await session.waitFor(id, 'FAILED')).failure).toMatchObject({
      code: 'token_expired',
      advice: expect.stringContaining('Launch the app again') as string,
    });
  });
});

const effects = {
  '500 twice': [{ status: 500 }, 2],
  '503 with Retry-After': [{ status: 503, retryAfterSeconds: 1 }, 1],
  'a slow answer': [{ delayMs: 1200 }, 1],
  'a connection that is cut, twice': [{ reset: true }, 2],
  'an answer that is lost': [{ dropResponse: true }, 1],
} as const;
const everyFault = externalAppEndpoints.flatMap((endpoint) =>
  Object.entries(effects).map(([name, [effect, times]]) => [endpoint, name, effect, times] as const),
);

describe.concurrent('faults on the way', () => {
  test(
    'polls that are cut, lost or refused: the next one comes no sooner than the platform wants polls',
    { tags: [onlyInAll] },
    async () => {
      const flow = await start();
      for (const [i, effect] of [{ reset: true }, { dropResponse: true }, { status: 500 }, { status: 503 }].entries())
        await flow.fault('operation.status', effect, { after: i });
      const { id, decide } = await flow.requested();
      const polls = async () =>
        (await flow.sandbox.trace(flow.launchId)).filter(({ endpoint }) => endpoint === 'operation.status');
      while ((await polls()).length < 5) await sleep(200);
      await decide('approve');
      await expectDelivered(flow, id);
      const times = (await polls()).map(({ at }) => Date.parse(at));
      for (const [i, at] of times.slice(1).entries()) expect(at - times[i]!).toBeGreaterThan(1_800);
    },
  );

  test.each(everyFault)(
    '%s: %s, and the run ends right',
    { tags: [onlyInAll] },
    async (endpoint, _name, effect, times) => {
      const sandbox = await startSandbox();
      const app = await startApp(sandbox.url, { env: { UPLOAD_PART_BYTES: '5000' } });
      await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${app.url}/launch` });
      const { launchId, launchUrl } = await sandbox.launch({ appId: 'tested' });
      await sandbox.control('POST', 'faults', {
        launchId,
        endpoint,
        effect,
        times,
        after: endpoint === 'upload.chunk' ? 1 : 0,
      });
      const session = await openSession(launchUrl);
      const { id } = await session.start(smallRun);
      const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
      // Within five minutes of its end the token is renewed.
      if (endpoint === 'token.renew') await sandbox.advance(26 * minute, launchId);
      await sandbox.control('POST', `operations/${operationId}/approve`);
      if (endpoint === 'token.renew') await sandbox.advance(35 * minute, launchId);
      const run = await session.waitFor(id, 'COMPLETED');
      expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
      const { uploads, operations } = await sandbox.control('GET', `launches/${launchId}`);
      expect([operations.length, uploads.filter(({ fileId }) => fileId !== null).length]).toEqual([1, 1]);
      const [fault] = (await sandbox.control('GET', 'faults')).faults;
      expect(fault!.fired).toBe(times); // one that never fired would prove nothing
    },
  );

  test("a platform that stays away: the run fails after its patience, with the platform's request id", async () => {
    const { fault, session, requested } = await start({ env: { PLATFORM_PATIENCE_MS: '0' } });
    await fault('upload.initiate', { status: 500 }, { times: 100 });
    const { id, decide } = await requested();
    await decide('approve');
    expect((await session.waitFor(id, 'FAILED')).failure).toMatchObject({
      code: 'internal_error',
      requestId: expect.stringMatching(/./) as string,
    });
  });
});

describe.concurrent('cancel', () => {
  test('while waiting: no more polls, nothing processed, and a later approval changes nothing', async () => {
    const { sandbox, launchId, session, requested } = await start();
    const { id, decide } = await requested();
    expect(await (await session.post(`api/runs/${id}/cancel`)).json()).toMatchObject({ state: 'CANCELLED' });
    const before = (await sandbox.trace(launchId)).length;
    await decide('approve');
    await sleep(2500);
    expect((await sandbox.trace(launchId)).length).toBe(before);
    expect((await session.post(`api/runs/${id}/cancel`)).status).toBe(409);
  });

  test.each(['PROCESSING', 'UPLOADING'] as const)('while %s: it stops, and leaves no work folder', async (state) => {
    const flow = await start(state === 'PROCESSING' ? { definition: badSteps } : {});
    if (state === 'UPLOADING') await flow.fault('upload.chunk', { delayMs: 20_000 }, { times: 10 });
    const { id, decide } = await flow.requested(state === 'PROCESSING' ? { stepId: 'endless' } : smallRun);
    await decide('approve');
    await flow.session.waitFor(id, state);
    await sleep(300);
    expect(await (await flow.session.post(`api/runs/${id}/cancel`)).json()).toMatchObject({ state: 'CANCELLED' });
    // After the commit that ends the run.
    await untilEmpty(workFolders(flow.app.dataDir));
    const { uploads } = await flow.sandbox.control('GET', `launches/${flow.launchId}`);
    expect(uploads.filter(({ fileId }) => fileId !== null)).toEqual([]);
  });
});

describe.concurrent('an output that is not the one the upload began with', { tags: [onlyInAll] }, () => {
  test.each(['changed', 'gone'])(
    '%s while the app was down: processed again, a new upload, the right bytes',
    async (how) => {
      const dataDir = await testFolder();
      const flow = await start({ dataDir });
      await flow.fault('upload.chunk', { delayMs: 5000 }, { after: 2 });
      const { id, decide } = await flow.requested({ stepId: 'cog', input: { type: 'synthetic', size: 256 } });
      await decide('approve');
      await flow.session.waitFor(id, 'UPLOADING');
      while (((await flow.session.run(id)).upload?.acknowledgedParts ?? 0) < 2) await sleep(20);
      await flow.app.close();
      const [attempt] = await readdir(`${workFolders(dataDir)}/${id}`);
      const output = `${workFolders(dataDir)}/${id}/${attempt}/output/cog.tif`;
      if (how === 'gone') await rm(output);
      else await appendFile(output, 'x');
      const second = await startApp(flow.sandbox.url, { dataDir, env: { UPLOAD_PART_BYTES: '5000' } });
      const home = flow.session.home.replace(flow.app.url, second.url);
      const session = sessionOf(
        new Response(null, { headers: { location: home, 'set-cookie': flow.session.cookie } }),
        home,
      );
      const run = await session.waitFor(id, 'COMPLETED');
      expect(run.history.map(({ state }) => state)).toEqual([
        'CREATED',
        'AWAITING_APPROVAL',
        'APPROVED',
        'PROCESSING',
        'UPLOADING',
        'PROCESSING',
        'UPLOADING',
        'COMPLETED',
      ]);
      expect(await fetchedDigest(flow.sandbox, run.file?.fileId)).toBe(run.output?.sha256);
      await second.close();
    },
  );
});

describe.concurrent('bad requests to the app', () => {
  test.each<[object, number, string]>([
    [{ stepId: 'nope' }, 400, 'unknown_step'],
    [{ stepId: 'cog', parameters: { blockSize: 7 } }, 400, 'invalid_parameters'],
    [{ stepId: 'cog', parameters: { nope: 7 } }, 400, 'invalid_parameters'],
    [{ stepId: 'cog', parameters: [] }, 400, 'validation_failed'],
    [{ parameters: {} }, 400, 'validation_failed'],
    [{ stepId: 'cog', extra: 1 }, 400, 'validation_failed'],
    [{ stepId: 'cog', input: { type: 'local', path: '../x' } }, 400, 'unsafe_path'],
    [{ stepId: 'cog', input: { type: 'local', path: 'missing.tif' } }, 400, 'unsafe_path'],
    [{ stepId: 'cog', input: { type: 'synthetic', size: 1e9 } }, 400, 'validation_failed'],
  ])('%j: %d %s, and no operation is created', async (body, status, code) => {
    const { sandbox, launchId, session } = await start();
    const answer = await session.post('api/runs', body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ code, requestId: expect.any(String) as string });
    expect((await sandbox.control('GET', `launches/${launchId}`)).operations).toEqual([]);
  });
});
