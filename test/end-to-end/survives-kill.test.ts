/** kill -9 from outside, for real: what was acknowledged is not lost, and nothing is done twice. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { fetchedDigest, openSession, sessionOf, type BrowserSession } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { startServer } from '../support/processes.ts';
import {
  apiKey,
  openUpload,
  sandboxClient,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
} from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

const pollMs = 2000;

describe.concurrent('app', () => {
  async function start(settings: Readonly<Record<string, string>> = {}) {
    const sandbox = await startSandbox();
    const dataDir = await testFolder();
    const env = {
      PLATFORM_URL: sandbox.url,
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: 'x'.repeat(32),
      DATA_DIR: dataDir,
      POLL_INTERVAL_MS: String(pollMs),
      UPLOAD_PART_BYTES: '10000',
      LOG_LEVEL: 'warn',
      PORT: '0',
      ...settings,
    };
    const first = await startServer('app', [], env);
    await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${first.url}/launch` });
    const launch = await sandbox.launch({ appId: 'tested' });
    const session = await openSession(launch.launchUrl);
    const reopen = (url: string): BrowserSession => {
      const home = session.home.replace(first.url, url);
      const answer = new Response(null, { headers: { location: home, 'set-cookie': session.cookie } });
      return sessionOf(answer, home);
    };
    return { sandbox, env, app: first, ...launch, session, reopen };
  }

  async function until(session: BrowserSession, id: string, isThere: (run: RunView) => boolean): Promise<RunView> {
    for (;;) {
      const run = await session.run(id);
      if (isThere(run)) return run;
      if (run.isFinal) throw new Error(`the run is ${run.state}`);
      await sleep(10);
    }
  }

  test.each<[string, (run: RunView) => boolean]>([
    ['while it waits for approval', (run) => run.state === 'AWAITING_APPROVAL'],
    ['while it processes', (run) => run.state === 'PROCESSING'],
    ['while it uploads', (run) => run.state === 'UPLOADING' && (run.upload?.acknowledgedParts ?? 0) >= 2],
  ])('killed %s: another process goes on; one operation, one file, the same bytes', async (_when, isThere) => {
    const { sandbox, env, app, launchId, session, reopen } = await start();
    await sandbox.control('POST', 'faults', {
      launchId,
      endpoint: 'upload.chunk',
      after: 2,
      times: 3,
      effect: { delayMs: 700 },
    });
    const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 256 } });
    const waiting = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
    const approve = () => sandbox.control('POST', `operations/${waiting.operationId}/approve`);
    if (!isThere(waiting)) {
      await approve();
      await until(session, id, isThere);
    }
    await app.kill('SIGKILL');
    const second = await startServer('app', [], env);
    const after = reopen(second.url);
    if (isThere(waiting)) await approve();
    const run = await until(after, id, ({ state }) => state === 'COMPLETED');
    expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
    const { operations, uploads } = await sandbox.control('GET', `launches/${launchId}`);
    expect([operations.length, uploads.filter(({ fileId }) => fileId !== null).length]).toEqual([1, 1]);
    const calls = await sandbox.trace(launchId);
    const polls = calls.filter(({ endpoint }) => endpoint === 'operation.status').map(({ at }) => Date.parse(at));
    polls.slice(1).forEach((at, i) => expect(at - polls[i]!).toBeGreaterThanOrEqual(pollMs - 20));
    // Parts that were acknowledged before the kill are not sent again, but for the one whose answer may have been lost.
    const stored = calls
      .filter(({ endpoint, status }) => endpoint === 'upload.chunk' && status === 200)
      .map(({ detail }) => detail['partNumber'] as number);
    const repeated = stored.length - new Set(stored).size;
    expect(repeated).toBeLessThanOrEqual(1);
    await second.kill('SIGTERM');
  });

  test('killed between two tiles: the next process takes the finished one', { tags: [onlyInAll] }, async () => {
    const { sandbox, env, app, session, reopen } = await start({ TILE_PIXELS: '65536', STEP_CONCURRENCY: '1' });
    const { id } = await session.start({ stepId: 'slope', input: { type: 'synthetic', size: 2_048 } });
    const { operationId } = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    const isFinished = (run: RunView) => /d/.test(run.progress?.tiles ?? '');
    const before = await until(session, id, isFinished);
    await app.kill('SIGKILL');
    const killedAtMs = Date.now();
    const [attempt = ''] = await readdir(join(env.DATA_DIR, 'work', id));
    const number = before.progress.tiles!.indexOf('d');
    const second = await startServer('app', [], env);
    const record = join(env.DATA_DIR, 'work', id, String(Number(attempt) + 1), 'tiles', String(number), 'tile.json');
    const { mtimeMs } = await vi.waitFor(() => stat(record), { timeout: 30_000, interval: 20 });
    expect(mtimeMs).toBeLessThan(killedAtMs);
    const run = await until(reopen(second.url), id, ({ state }) => state === 'COMPLETED');
    expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
    await second.kill('SIGTERM');
  });

  test('work folders that a kill left behind are removed at the next start', { tags: [onlyInAll] }, async () => {
    const { env, app } = await start();
    await app.kill('SIGKILL');
    const orphan = join(env.DATA_DIR, 'work', 'run-that-ended');
    await mkdir(orphan, { recursive: true });
    await writeFile(join(orphan, 'output.tif'), 'x');
    const second = await startServer('app', [], env);
    expect(await readdir(join(env.DATA_DIR, 'work'))).toEqual([]);
    await second.kill('SIGTERM');
  });

  test('SIGTERM: it ends in order, and another process goes on', { tags: [onlyInAll] }, async () => {
    const { sandbox, env, app, session, reopen } = await start();
    const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 128 } });
    const { operationId } = await until(session, id, ({ state }) => state === 'AWAITING_APPROVAL');
    app.child.kill('SIGTERM');
    const code = await new Promise((resolve) => app.child.once('exit', resolve));
    expect(code).toBe(0);
    await sandbox.control('POST', `operations/${operationId}/approve`);
    const second = await startServer('app', [], env);
    await until(reopen(second.url), id, ({ state }) => state === 'COMPLETED');
    await second.kill('SIGTERM');
  });
});

describe.concurrent('sandbox', () => {
  test(
    'killed again and again while chunks come in: every acknowledged part is there, and nothing else',
    { tags: [onlyInAll] },
    async () => {
      const dataDir = await testFolder();
      const start = async () => {
        const server = await startServer('sandbox', ['--port', '0', '--data', dataDir], {
          SANDBOX_API_KEY: apiKey,
          LOG_LEVEL: 'silent',
        });
        return { server, client: sandboxClient(server.url, dataDir, async () => {}) };
      };
      let { server, client } = await start();
      const upload = await openUpload(client);
      const parts = [1, 2, 3, 4, 5, 6].map((seed) => someBytes(3_000_000, seed));
      for (const [i, part] of parts.entries()) {
        // Killed at some moment of this part, before or after its acknowledgement.
        const sending = sendChunk(client, upload, i + 1, part).catch(() => null);
        await sleep(3 * i);
        await server.kill('SIGKILL');
        const acknowledged = (await sending)?.status === 200;
        ({ server, client } = await start());
        const held = (await client.control('GET', `launches/${upload.launchId}`)).uploads[0]!.parts.length;
        expect(held).toBeGreaterThanOrEqual(acknowledged ? i + 1 : i);
        expect((await sendChunk(client, upload, i + 1, part)).status).toBe(200);
      }
      const { fileId } = (await sendComplete(client, upload, 18_000_000)).body;
      await server.kill('SIGKILL');
      ({ server, client } = await start());
      expect(await fetchedDigest(client, fileId)).toBe(createHash('sha256').update(Buffer.concat(parts)).digest('hex'));
      expect((await sendComplete(client, upload, 18_000_000)).body.fileId).toBe(fileId);
      await server.kill('SIGTERM');
    },
  );

  test('clock, faults, operations and tokens are as they were after a kill', { tags: [onlyInAll] }, async () => {
    const dataDir = join(await testFolder(), 'new', 'folder');
    const args = ['--port', '0', '--data', dataDir];
    const server = await startServer('sandbox', args, { SANDBOX_API_KEY: apiKey });
    const client = sandboxClient(server.url, dataDir, async () => {});
    const { launchId, token } = await client.launch();
    await client.app('POST', `/operation/${token}`, { body: { name: 'x' } });
    await client.advance(1_000_000, launchId);
    await client.advance(5_000_000);
    await client.control('POST', 'faults', { endpoint: 'user.detail', effect: { reset: true } });
    const [clock, launch] = [await client.control('GET', 'clock'), await client.control('GET', `launches/${launchId}`)];
    await server.kill('SIGKILL');
    const second = await startServer('sandbox', args, {});
    const after = sandboxClient(second.url, dataDir, async () => {});
    expect(await after.control('GET', `launches/${launchId}`)).toEqual(launch);
    expect(Date.parse((await after.control('GET', 'clock')).now) - Date.parse(clock.now)).toBeLessThan(60_000);
    expect((await after.control('GET', 'faults')).faults).toHaveLength(1);
    expect(second.output()).not.toContain('api key');
    await second.kill('SIGTERM');
  });
});
