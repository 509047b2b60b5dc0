// @module-tag all
/** A run that one machine has seen happens again on another: the same calls, verdict and pixels; or the first that is not. */
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pLimit from 'p-limit';
import { describe, expect, test } from 'vitest';
import { challengePlan } from '../../src/commands/certify/challenge.ts';
import { bringFile } from '../../src/commands/bring-file.ts';
import { bringInputs } from '../../src/commands/replay/bring-inputs.ts';
import { runPlan } from '../../src/commands/certify/run-plan.ts';
import { scenarios } from '../../src/commands/certify/scenarios.ts';
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
import { geoTiff } from '../support/geotiff.ts';
import { appFaults, startFaultyApp, type AppFault } from '../support/mutants/faulty-app.ts';

const partBytes = '6000';
const wanted = { stepId: 'cog', input: { type: 'synthetic', size: 128 } };

async function appOf(platform: RunningSandbox, env: Record<string, string> = {}) {
  const app = await startApp(myApp, { platform, env: { UPLOAD_PART_BYTES: partBytes, ...env } });
  cleanUpLater(() => app.close());
  return app;
}

/** A sandbox with the reference app, both of this test alone. */
async function machine() {
  const platform = await startSandbox({ permissions: ['external_app', 'files_admin', 'files_upload'] });
  cleanUpLater(() => platform.close());
  return { platform, app: await appOf(platform) };
}

const bundleOf = async (platform: RunningSandbox, launchId: string) =>
  bundleSchema.parse(await sandboxCall(platform, `launches/${launchId}/bundle`));

/** Plays it on a machine that has seen nothing. */
async function again(
  recorded: Bundle,
  launchUrl?: (platform: RunningSandbox) => Promise<string>,
  paths: readonly string[] = [],
) {
  const platform = await startSandbox({ permissions: ['external_app', 'files_admin', 'files_upload'] });
  cleanUpLater(() => platform.close());
  const signal = new AbortController().signal;
  const folder = await testFolder();
  const inputDir = join(folder, 'inputs');
  const items = await bringInputs(recorded, {
    sandbox: { ...platform, adminKey: '' },
    profile: platform.profile,
    ...{ paths, folder: join(folder, 'brought'), inputDir, signal },
  });
  return play(recorded, {
    sandbox: platform,
    launchUrl: launchUrl ? await launchUrl(platform) : (await appOf(platform, { INPUT_DIR: inputDir })).launchUrl,
    startRequest: null,
    tokenField: 'token',
    limits: assumedLimits,
    // A step's child of the reference app took more than 15 s on a busy machine. The small apps have no step, and some end early.
    patienceMs: launchUrl ? 15_000 : 120_000,
    ...{ items, signal },
  });
}

/** Age of a token that ends ten minutes later. */
const oldTokenMs = assumedLimits.tokenLifetimeMs - 10 * 60_000;
/** Stories of runs that begin with such a token. */
const withOldToken = ['the token ends, and the status fails', 'renewed'];

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
    await platform.advance(11 * 60_000, launchId);
    await polls(1);
    await platform.approve({ launchId });
  },
  'nobody decides': async ({ platform, launchId, polls }) => {
    await polls(1);
    await platform.advance(31 * 60_000, launchId);
  },
};

/** Records a run of the reference app by a story. */
async function recordedBy(
  story: Story,
  {
    on,
    inputOf,
    isTokenOld = false,
  }: {
    on?: Awaited<ReturnType<typeof machine>>;
    inputOf?: (platform: RunningSandbox) => Promise<object>;
    isTokenOld?: boolean;
  } = {},
): Promise<{ bundle: Bundle; platform: RunningSandbox; secrets: string[] }> {
  const { platform, app } = on ?? (await machine());
  const { launchId, launchUrl, token } = await platform.launch(app.launchUrl);
  if (isTokenOld) await platform.advance(oldTokenMs, launchId);
  const session = await openLaunch(launchUrl);
  let run = await session.startRun({ ...wanted, ...(inputOf ? { input: await inputOf(platform) } : {}) });
  const answered = async () =>
    (await platform.trace(launchId)).filter(({ endpoint, status }) => endpoint === 'operation.status' && status === 200)
      .length;
  await story({
    platform,
    launchId,
    async polls(count) {
      const before = await answered();
      await expect.poll(answered, { timeout: 900_000, interval: 50 }).toBeGreaterThanOrEqual(before + count);
    },
  });
  await expect
    .poll(async () => (run = await session.run(run.id)).isFinal, { timeout: 900_000, interval: 200 })
    .toBe(true);
  await expect
    .poll(async () => (await bundleOf(platform, launchId)).outputs.every(({ status }) => status === 'COMPLETED'), {
      timeout: 900_000,
    })
    .toBe(true);
  return { bundle: await bundleOf(platform, launchId), platform, secrets: [token, platform.apiKey] };
}

describe('a run of the reference app', () => {
  test.concurrent.each(Object.entries(stories))('%s: the same again', { timeout: 900_000 }, async (name, story) => {
    const { bundle, secrets } = await recordedBy(story, { isTokenOld: withOldToken.includes(name) });
    const text = JSON.stringify(bundle);
    for (const secret of secrets) expect(text).not.toContain(secret);
    const { bundle: now, unfired } = await again(bundle);
    expect(firstDifference(bundle, now)).toBeNull();
    expect(unfired).toEqual([]);
    // It can fail: with one cause less another thing happens.
    expect(firstDifference({ ...bundle, effects: bundle.effects.slice(0, -1) }, now)).toMatch(/nothing came/);
  });
});

test('what was uploaded comes with it, or is asked for by its digest', { timeout: 900_000 }, async () => {
  const scene = geoTiff({ width: 64, height: 48, value: (x, y) => x * 3 + y });
  const path = join(await testFolder(), 'scene.tif');
  await writeFile(path, scene);
  const { bundle } = await recordedBy(stories['rejected']!, {
    async inputOf(platform) {
      const file = { path, fileName: 'mine.tif', sourceType: 'PANCHROMATIC' } as const;
      const item = await bringFile({ ...platform, adminKey: '' }, platform.profile, file, new AbortController().signal);
      return { type: 'platform', items: [item] };
    },
  });
  expect(bundle.obstacles).toEqual([]);
  expect(bundle.inputs).toMatchObject([{ fileName: 'mine.tif', sizeBytes: scene.length, from: { type: 'item' } }]);
  const apart: Bundle = { ...bundle, inputs: bundle.inputs.map((one) => ({ ...one, data: null })) };
  for (const [recorded, paths] of [
    [bundle, []],
    [apart, [path]],
  ] as const) {
    const { bundle: now, unfired } = await again(recorded, undefined, paths);
    expect([firstDifference(recorded, now), unfired]).toEqual([null, []]);
    expect(now.inputs[0]!.sha256).toBe(bundle.inputs[0]!.sha256);
  }
  await expect(again(apart)).rejects.toThrow(/mine\.tif is not in the bundle: give the file with SHA-256/);
  const damaged = bundle.inputs.map((one) => ({ ...one, data: Buffer.from('other').toString('base64') }));
  await expect(again({ ...bundle, inputs: damaged })).rejects.toThrow(/has not the bytes that its digest tells/);
  const [input] = bundle.inputs;
  const outside = [{ ...input!, from: { type: 'local' as const, path: '../../outside.tif' } }];
  await expect(again({ ...bundle, inputs: outside })).rejects.toThrow(/is no path below a folder/);
});

/** Runs a well-made small app through a story. Its mutants are held to that run. */
async function goodRun(
  story: (it: { platform: RunningSandbox; launchId: string }) => Promise<void>,
  isTokenOld: boolean,
): Promise<Bundle> {
  const platform = await startSandbox({ permissions: ['external_app', 'files_admin', 'files_upload'] });
  cleanUpLater(() => platform.close());
  const { launchId, launchUrl } = await platform.launch(await startFaultyApp(null, platform), {
    renewPolicy: 'rotate',
  });
  if (isTokenOld) await platform.advance(oldTokenMs, launchId);
  await fetch(launchUrl);
  await story({ platform, launchId });
  const made = () => bundleOf(platform, launchId);
  const isOver = async () => {
    const { effects, outputs } = await made();
    return (
      effects.some(({ operationStatus }) => operationStatus === 'EXPIRED') ||
      outputs.some(({ status }) => status === 'COMPLETED' || status === 'FAILED')
    );
  };
  await expect.poll(isOver, { timeout: 900_000 }).toBe(true);
  return made();
}

const polled = async (platform: RunningSandbox, launchId: string, count: number) =>
  expect
    .poll(
      async () =>
        (await platform.trace(launchId)).filter(
          ({ endpoint, status }) => endpoint === 'operation.status' && status === 200,
        ).length,
      { timeout: 900_000, interval: 50 },
    )
    .toBeGreaterThanOrEqual(count);

const good = {
  async approved({ platform, launchId }) {
    await polled(platform, launchId, 2);
    await platform.approve({ launchId });
  },
  async expired({ platform, launchId }) {
    await polled(platform, launchId, 1);
    await platform.advance(31 * 60_000, launchId);
  },
  async renewed({ platform, launchId }) {
    await polled(platform, launchId, 1);
    await platform.advance(11 * 60_000, launchId);
    await polled(platform, launchId, 3);
    await platform.approve({ launchId });
  },
} satisfies Record<string, (it: { platform: RunningSandbox; launchId: string }) => Promise<void>>;

/** Each mistake, the good run that shows it, and the first call or rule at which it does. */
const divergences: Partial<Record<AppFault, readonly [keyof typeof good, RegExp]>> = {
  'polls-too-early': ['approved', /^rule poll-interval:[^]*now {3}failed: .*expected: /],
  'polls-on-after-approved': ['approved', /now {3}.*"endpoint":"operation\.status".*"operationStatus":"APPROVED"/],
  'uploads-before-approval': ['approved', /now {3}.*"endpoint":"upload\.initiate".*"operationStatus":"REQUESTED"/],
  'uploads-before-it-has-read-approved': ['approved', /now {3}.*"endpoint":"upload\.initiate"/],
  'uploads-after-expiry': ['expired', /then {2}nothing came\n {2}now {3}.*"endpoint":"upload\.initiate"/],
  'chunks-out-of-order': ['approved', /"endpoint":"upload\.chunk".*"partNumber":2[^]*now .*"partNumber":3/],
  'completes-early': ['approved', /"endpoint":"upload\.chunk"[^]*now {3}.*"endpoint":"upload\.complete"/],
  'changes-the-key-midway': ['approved', /now {3}.*"endpoint":"upload\.chunk","status":4\d\d/],
  'goes-on-with-the-old-token': ['renewed', /now {3}.*"endpoint":"operation\.status","status":4\d\d/],
};

describe('a good app’s run', () => {
  // Two launches are two bundles: what is done to one with the other's token is no run of one of them.
  test('every mistake that one launch can show is among them', () => {
    expect(Object.keys(divergences).sort()).toEqual(
      appFaults.filter((one) => one !== 'reuses-a-token-in-another-launch').sort(),
    );
  });

  test.concurrent.each(Object.entries(good))(
    '%s: mutants diverge where they break the rule',
    { timeout: 900_000 },
    async (name, story) => {
      const recorded = await goodRun(story, withOldToken.includes(name));
      const kept = await again(recorded, (other) => startFaultyApp(null, other));
      expect(firstDifference(recorded, kept.bundle, kept.rules)).toBeNull();
      const mine = Object.entries(divergences).filter(([, [run]]) => run === name);
      const told = await Promise.all(
        mine.map(async ([fault, [, expected]]) => {
          const { bundle: now, rules } = await again(recorded, (other) => startFaultyApp(fault as AppFault, other));
          const difference = firstDifference(recorded, now, rules) ?? 'the same';
          return expected.test(difference) ? [] : [`${fault}: ${difference}`];
        }),
      );
      expect(told.flat()).toEqual([]);
      if (name !== 'approved') return;
      const never: Bundle = {
        ...recorded,
        causes: [...recorded.causes, { do: 'revoke', after: { endpoint: 'token.renew', nth: 3 } }],
      };
      expect((await again(never, (other) => startFaultyApp(null, other))).unfired).toEqual([
        'revoke, after token.renew 3',
      ]);
    },
  );
});

/** Plans as the seeds draw them, 17 launches and more of each; `BUNDLE_SEEDS=6` plays a hundred. */
const seeds = Array.from({ length: Number(process.env['BUNDLE_SEEDS'] ?? 0) }, (_, i) => `bundles-${i}`);

test.runIf(seeds.length > 0).each(seeds)(
  'certify’s plan as the seed %s draws it: each launch again, to the same verdict and pixels',
  { timeout: 900_000 },
  async (seed) => {
    const { scenarios: drawn, challenge } = challengePlan(scenarios, seed);
    const { platform, app } = await machine();
    const found = await runPlan(drawn, {
      sandbox: platform,
      launchUrl: app.launchUrl,
      launchMode: 'query',
      tokenField: 'token',
      users: challenge.users,
      startRequest: {
        method: 'POST',
        path: 'api/runs',
        body: JSON.stringify({ ...wanted, input: { type: 'synthetic', size: challenge.items[0]!.sizePixels } }),
      },
      patienceMs: 60_000,
      signal: new AbortController().signal,
      onStatus: () => {},
    });
    const limit = pLimit(5);
    const different = await Promise.all(
      found
        .flatMap(({ id, launches }) => launches.map(({ launchId }) => ({ id, launchId })))
        .map(({ id, launchId }) =>
          limit(async () => {
            const recorded = await bundleOf(platform, launchId);
            const { bundle: now, rules, unfired } = await again(recorded);
            const difference = firstDifference(recorded, now, rules);
            return difference === null && unfired.length === 0 && recorded.obstacles.length === 0
              ? []
              : [{ id, difference, unfired, obstacles: recorded.obstacles }];
          }),
        ),
    );
    expect(different.flat()).toEqual([]);
    expect(different.length).toBeGreaterThanOrEqual(17);
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

test('the commands: a file of a launch, played again; what is wrong is said', { timeout: 900_000 }, async () => {
  const { bundle, platform } = await recordedBy(stories['rejected']!);
  const [{ launchId } = { launchId: '' }] = await platform.operations();
  const folder = await testFolder();
  const file = join(folder, 'run.json');
  const made = await command('replay', [launchId, '--sandbox', platform.url, '--save', file]);
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
    status: 2,
    text: expect.stringContaining('its format is not told, and must be "marketplace-run/2"') as string,
  });
  expect(await command('replay', [launchId, '--sandbox', platform.url])).toMatchObject({
    status: 0,
    text: expect.stringContaining('the same:') as string,
  });
  expect((await command('replay', [])).text).toContain('give a LAUNCH_ID, a FILE, or --run RUN_ID');
  expect((await command('replay', ['launch_none', '--sandbox', platform.url])).text).toContain(
    'has seen no launch launch_none: copy the id from its inspector',
  );
  expect((await command('replay', ['none.json'])).text).toContain('none.json cannot be read (ENOENT)');
});

test('the runs that are kept are as they were', { timeout: 900_000 }, async () => {
  const kept = join(projectRoot, 'test/bundles');
  const names = (await readdir(kept)).filter((name) => name.endsWith('.json'));
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const recorded = bundleSchema.parse(JSON.parse(await readFile(join(kept, name), 'utf8')));
    const { bundle: now, unfired } = await again(recorded);
    expect([name, firstDifference(recorded, now), unfired]).toEqual([name, null, []]);
  }
});
