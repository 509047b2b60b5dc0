/** A run that one machine has seen happens again on another: the same calls, verdict and pixels; or the first that is not. */
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { firstDifference } from '../../src/commands/replay/compare.ts';
import { play } from '../../src/commands/replay/play.ts';
import { assumedLimits } from '../../src/contract/index.ts';
import myApp from '../../src/my-app/app.ts';
import { bundle as bundleSchema, type Bundle } from '../../src/sandbox/bundles/bundle.ts';
import { scrubber } from '../../src/sandbox/referee/redaction.ts';
import { secretFree } from '../../src/sandbox/bundles/secret-free.ts';
import { openLaunch, startApp, startSandbox, type RunningSandbox } from '../../src/testing/index.ts';
import { sandboxCall } from '../../src/testing/sandbox-call.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { startFaultyApp } from '../support/mutants/faulty-app.ts';

const partBytes = '6000';
const wanted = { stepId: 'cog', input: { type: 'synthetic', size: 128 } };

/** A sandbox with the reference app, both of this test alone. */
async function machine() {
  const platform = await startSandbox();
  cleanUpLater(() => platform.close());
  const app = await startApp(myApp, { platform, env: { UPLOAD_PART_BYTES: partBytes } });
  cleanUpLater(() => app.close());
  return { platform, app };
}

const bundleOf = async (platform: RunningSandbox, launchId: string) =>
  bundleSchema.parse(await sandboxCall(platform, `launches/${launchId}/bundle`));

/** Plays it on a machine that has seen nothing. */
async function again(recorded: Bundle, launchUrl?: (platform: RunningSandbox) => Promise<string>) {
  const { platform, app } = await machine();
  return play(recorded, {
    sandbox: platform,
    launchUrl: launchUrl ? await launchUrl(platform) : app.launchUrl,
    startRequest: null,
    tokenField: 'token',
    limits: assumedLimits,
    patienceMs: 15_000,
    signal: new AbortController().signal,
  });
}

type Story = (it: {
  platform: RunningSandbox;
  launchId: string;
  polls: (count: number) => Promise<void>;
}) => Promise<void>;

const stories: Record<string, Story> = {
  'approved after two polls, a chunk is cut, an answer is lost': async ({ platform, launchId, polls }) => {
    await platform.arm({ launchId, endpoint: 'upload.chunk', effect: { reset: true }, after: 1 });
    await polls(2);
    await platform.arm({ launchId, endpoint: 'upload.complete', effect: { dropResponse: true } });
    await platform.approve({ launchId });
  },
  rejected: async ({ platform, launchId, polls }) => {
    await polls(1);
    await platform.reject({ launchId });
  },
  'the token ends, and the status fails': async ({ platform, launchId, polls }) => {
    await platform.arm({
      launchId,
      endpoint: 'operation.status',
      effect: { status: 503, retryAfterSeconds: 2 },
      after: 1,
    });
    await polls(2);
    await platform.advance(20 * 60_000, launchId);
    await polls(1);
    await platform.approve({ launchId });
  },
  'nobody decides': async ({ platform, launchId, polls }) => {
    await polls(1);
    await platform.advance(31 * 60_000, launchId);
  },
};

/** Records a run of the reference app by a story. */
async function recordedBy(story: Story): Promise<{ bundle: Bundle; platform: RunningSandbox; secrets: string[] }> {
  const { platform, app } = await machine();
  const { launchId, launchUrl, token } = await platform.launch(app.launchUrl);
  const session = await openLaunch(launchUrl);
  let run = await session.startRun(wanted);
  const answered = async () =>
    (await platform.trace(launchId)).filter(({ endpoint, status }) => endpoint === 'operation.status' && status === 200)
      .length;
  await story({
    platform,
    launchId,
    async polls(count) {
      const before = await answered();
      await expect.poll(answered, { timeout: 30_000, interval: 50 }).toBeGreaterThanOrEqual(before + count);
    },
  });
  await expect
    .poll(async () => (run = await session.run(run.id)).isFinal, { timeout: 60_000, interval: 200 })
    .toBe(true);
  await expect
    .poll(async () => (await bundleOf(platform, launchId)).outputs.every(({ status }) => status === 'COMPLETED'), {
      timeout: 30_000,
    })
    .toBe(true);
  return { bundle: await bundleOf(platform, launchId), platform, secrets: [token, platform.apiKey] };
}

describe('a run of the reference app', () => {
  test.concurrent.each(Object.entries(stories))('%s: the same again', { timeout: 180_000 }, async (_, story) => {
    const { bundle, secrets } = await recordedBy(story);
    const text = JSON.stringify(bundle);
    for (const secret of secrets) expect(text).not.toContain(secret);
    const { bundle: now, unfired } = await again(bundle);
    expect(firstDifference(bundle, now)).toBeNull();
    expect(unfired).toEqual([]);
    // It can fail: with one cause less another thing happens.
    expect(firstDifference({ ...bundle, effects: bundle.effects.slice(0, -1) }, now)).toMatch(/nothing came/);
  });
});

test(
  'another app breaks off where it breaks the rule; a cause whose moment never comes is told',
  { timeout: 120_000 },
  async () => {
    const platform = await startSandbox();
    cleanUpLater(() => platform.close());
    const { launchId, launchUrl } = await platform.launch(await startFaultyApp(null, platform));
    await fetch(launchUrl);
    await platform.approve({ launchId });
    const isDelivered = async () =>
      (await platform.trace(launchId)).some(({ endpoint, status }) => endpoint === 'upload.complete' && status === 200);
    await expect.poll(isDelivered, { timeout: 20_000 }).toBe(true);
    await expect
      .poll(async () => (await bundleOf(platform, launchId)).outputs[0]?.status, { timeout: 20_000 })
      .toMatch(/COMPLETED|FAILED/);
    const good = await bundleOf(platform, launchId);
    const [same, outOfOrder, early] = await Promise.all(
      [null, 'chunks-out-of-order' as const, 'uploads-before-approval' as const].map((fault) =>
        again(good, (other) => startFaultyApp(fault, other)),
      ),
    );
    expect(firstDifference(good, same!.bundle)).toBeNull();
    expect(firstDifference(good, outOfOrder!.bundle)).toMatch(
      /"endpoint":"upload\.chunk".*"partNumber":2[^]*now .*"partNumber":3/,
    );
    expect(firstDifference(good, early!.bundle)).toMatch(
      /now .*"endpoint":"upload\.initiate".*"operationStatus":"REQUESTED"/,
    );
    const never: Bundle = {
      ...good,
      causes: [...good.causes, { do: 'revoke', after: { endpoint: 'token.renew', nth: 3 } }],
    };
    expect((await again(never, (other) => startFaultyApp(null, other))).unfired).toEqual([
      'revoke, after token.renew 3',
    ]);
  },
);

describe('no secret stays', () => {
  const secret = 'k3y_-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abc';
  const clean = secretFree((text) => text === secret);
  const base64 = Buffer.from(secret).toString('base64');
  test.each([
    ['plain', secret],
    ['in a path', `/public/x/${secret}/y`],
    ['in a query', `?token=${secret}&a=b`],
    ['in a header', `Bearer ${secret}`],
    ['URL-encoded', encodeURIComponent(`a/${secret}`)],
    ['in base64', base64],
    ['in base64 for addresses', Buffer.from(secret).toString('base64url')],
    ['as basic authentication', Buffer.from(`user:${secret}`).toString('base64')],
    ['in a file name', `${secret}.tif`],
    ['in an error', `the key ${secret} is unknown`],
  ])('%s', (_, text) => {
    const shown = JSON.stringify(clean({ a: [text], [text]: 1 }));
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain(base64);
    expect(shown).toContain('[redacted]');
  });

  test.each([encodeURIComponent(secret), base64, Buffer.from(secret).toString('base64url'), secret])(
    'nor in a trace: %s',
    (form) => {
      const scrub = scrubber([secret]);
      expect(JSON.stringify(scrub({ body: { [form]: `a ${form} b` } }))).not.toContain(form);
    },
  );

  test('and what is none does', () => {
    const value = { stepId: 'normalizedDifference', input: { itemId: 'coastal-optical-2024-01-02-scene' } };
    expect(clean(value)).toEqual(value);
  });
});

const run = promisify(execFile);
async function command(name: string, args: readonly string[], env: Record<string, string> = {}) {
  try {
    const { stdout } = await run(process.execPath, ['bin/marketplace-app-kit.mjs', name, ...args], {
      cwd: projectRoot,
      env: { ...process.env, ...env },
    });
    return { status: 0, text: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, text: stdout + stderr };
  }
}

test('the commands: a file of a launch, played again; what is wrong is said', { timeout: 240_000 }, async () => {
  const { bundle, platform } = await recordedBy(stories['rejected']!);
  const [{ launchId } = { launchId: '' }] = await platform.operations();
  const folder = await testFolder();
  const file = join(folder, 'run.json');
  const made = await command('bundle', [launchId, '--sandbox', platform.url, '--out', file]);
  expect(made).toMatchObject({ status: 0, text: expect.stringMatching(/2 causes, \d+ calls, 0 outputs/) as string });
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(bundle);
  expect(await command('replay', [file])).toMatchObject({
    status: 0,
    text: expect.stringContaining('the same:') as string,
  });
  await writeFile(file, JSON.stringify({ ...bundle, obstacles: ['its input is gone'] }));
  expect(await command('replay', [file])).toMatchObject({
    status: 2,
    text: expect.stringContaining('not replayable: its input is gone') as string,
  });
  await writeFile(file, '{}');
  expect(await command('replay', [file])).toMatchObject({
    status: 1,
    text: expect.stringContaining('is no bundle of a run') as string,
  });
  expect((await command('bundle', [])).text).toContain('give a LAUNCH_ID, or --run RUN_ID');
  expect((await command('bundle', ['launch_none', '--sandbox', platform.url])).text).toContain('404');
});

test('the runs that are kept are as they were', { timeout: 300_000 }, async () => {
  const kept = join(projectRoot, 'test/bundles');
  const names = (await readdir(kept)).filter((name) => name.endsWith('.json'));
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const recorded = bundleSchema.parse(JSON.parse(await readFile(join(kept, name), 'utf8')));
    const { bundle: now, unfired } = await again(recorded);
    expect([name, firstDifference(recorded, now), unfired]).toEqual([name, null, []]);
  }
});
