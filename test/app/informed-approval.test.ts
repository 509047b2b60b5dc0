// @module-tag all
/** A run that a user is asked to approve can run, shows its cost, and runs as shown. The author of a step sees its mistakes. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { factsOfItems, requireBands } from '../../src/app/processing/input-facts.ts';
import type { CatalogItem } from '../../src/contract/index.ts';
import myApp from '../../src/my-app/app.ts';
import { nameOf } from '../../src/app/runs/operation-request.ts';
import { ndvi } from '../../src/steps/index.ts';
import { freePort } from '../../src/commands/free-port.ts';
import badSteps from '../support/bad-steps.ts';
import { launchApp, smallRun, startApp, type BrowserSession, type StartAppOptions } from '../support/app.ts';
import { testConfinement } from '../support/confinement.ts';
import { sharedFolder, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

let sandbox: TestSandbox;
let session: BrowserSession;
let inputDir: string;
beforeAll(async () => {
  sandbox = await startSandbox({ seed: 'demo' });
  inputDir = await sharedFolder();
  const app = await startApp(sandbox.url, { env: { INPUT_DIR: inputDir } });
  ({ session } = await launchApp(sandbox, app));
});

const itemOf = (collectionId: string, itemId: string) => ({ type: 'platform', items: [{ collectionId, itemId }] });
const olinda = itemOf('olinda-coast', 'olinda-landsat7');
const dem = itemOf('jacksboro-fault', 'jacksboro-dem');
const ask = async (path: 'runs' | 'runs/check', body: object) => {
  const answer = await session.post(`api/${path}`, body);
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const operations = async () => (await sandbox.control('GET', 'operations')).operations;

/** With a scene of these bands in its catalog. */
async function sandboxOf(folder: string, bands: readonly string[]) {
  const scene = join(folder, 'scene');
  await mkdir(scene);
  for (const band of bands)
    await writeFile(join(scene, `l8_${band}.tif`), geoTiff({ width: 20, height: 10, value: (x) => x }));
  const platform = await startSandbox({
    prepare: async (one) => void (await one.importPath(scene, { onProgress: () => {}, onRefused: () => {} })),
  });
  return [platform, await startApp(platform.url)] as const;
}

describe('before anybody is asked', () => {
  test.each([
    [
      'a band that the item does not have',
      { stepId: 'ndvi', parameters: { bandA: 'lwir11' }, input: olinda },
      [
        {
          path: 'bandA',
          message: 'does not fit: no band has the name "lwir11"; the input has blue, green, red, nir, swir16, swir22',
        },
      ],
    ],
    [
      'two of them',
      { stepId: 'ndvi', parameters: { bandA: 'pan', bandB: '7' }, input: olinda },
      [
        { path: 'bandA', message: expect.stringContaining('"pan"') as string },
        { path: 'bandB', message: expect.stringContaining('"7"') as string },
      ],
    ],
    [
      'a band that the synthetic scene does not have',
      { stepId: 'scale', parameters: { band: 'swir22' }, input: { type: 'synthetic', size: 64 } },
      [{ path: 'band', message: expect.stringContaining('the input has blue, green, red, nir, swir16') as string }],
    ],
  ])('%s: 400 at its parameter, and no operation', async (_name, body, details) => {
    for (const path of ['runs', 'runs/check'] as const)
      expect(await ask(path, body)).toEqual({
        status: 400,
        body: expect.objectContaining({ code: 'invalid_parameters', details }) as object,
      });
    expect(await operations()).toEqual([]);
  });

  test.each([
    ['an item of another kind', { stepId: 'ndvi', input: dem }, /is heightmap; Normalized difference \(NDVI\) takes/],
    [
      'more items than the step takes',
      { stepId: 'cog', input: { type: 'platform', items: [...olinda.items, ...dem.items] } },
      /takes at most 1 of the platform's items, not 2/,
    ],
  ])('%s: 400, and no operation', async (_name, body, message) => {
    expect(await ask('runs', body)).toEqual({
      status: 400,
      body: expect.objectContaining({ error: expect.stringMatching(message) as string }) as object,
    });
    expect(await operations()).toEqual([]);
  });

  test("files of the app's own folder are looked into: their bands by every name that a step finds them by", async () => {
    await mkdir(join(inputDir, 'bands'), { recursive: true });
    for (const band of ['B4', 'B5'])
      await writeFile(join(inputDir, 'bands', `l8_${band}.tif`), geoTiff({ width: 30, height: 20, value: (x) => x }));
    const input = { type: 'local', path: 'bands' };
    for (const parameters of [{}, { bandA: 'B5', bandB: 'RED' }, { bandA: 'l8_B5' }])
      expect(await ask('runs/check', { stepId: 'ndvi', parameters, input })).toMatchObject({ status: 200 });
    expect(await ask('runs/check', { stepId: 'ndvi', parameters: { bandB: 'blue' }, input })).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/"blue"; the input has red \(l8_B4\.tif, band 1\), nir/) as string },
    });
    await writeFile(join(inputDir, 'broken.tif'), 'no raster');
    expect((await ask('runs/check', { stepId: 'cog', input: { type: 'local', path: 'broken.tif' } })).status).toBe(422);
  });

  test('bands that must lie on the same pixels, and do not: known before', async () => {
    for (const [folder, band, width] of [
      ['grids', 'B4', 30],
      ['grids', 'B5', 31],
      ['other', 'B5', 30],
      ['moved', 'B5', 30],
    ] as const) {
      // oxfmt-ignore
      await mkdir(join(inputDir, folder), { recursive: true });
      const origin = [500_000 + (folder === 'moved' ? 15 : 0), 5_000_000, 30] as const;
      await writeFile(
        join(inputDir, folder, `l8_${band}.tif`),
        geoTiff({ width, height: 20, value: (x) => x, origin }),
      );
    }
    const local = (path: string) => ({ type: 'local', path });
    expect(await ask('runs/check', { stepId: 'ndvi', input: local('grids') })).toMatchObject({
      status: 400,
      body: {
        error: expect.stringMatching(
          /nir and red do not lie on the same pixels \(31 x 20 pixels and 30 x 20 pixels\)/,
        ) as string,
      },
    });
    const change = async (before: string, after: string) => {
      const inputs = { before: local(before), after: local(after) };
      return (await ask('runs/check', { stepId: 'change', input: { type: 'named', inputs } })).status;
    };
    expect([await change('other', 'other'), await change('grids', 'other'), await change('other', 'moved')]).toEqual([
      200, 400, 400,
    ]);
    // A step that does not ask for the same pixels takes the rasters as they are.
    expect((await ask('runs/check', { stepId: 'mosaic', input: local('grids') })).status).toBe(200);
  });

  test('items of one band each by their size; of an item with several, the answer only warns', () => {
    const item = (id: string, width: number, ...names: string[]) =>
      ({ id, collectionId: 'x', shape: [20, width], bands: names.map((name) => ({ name })) }) as unknown as CatalogItem;
    const warningsOf = (...items: CatalogItem[]) =>
      requireBands(ndvi, { bandA: 'nir', bandB: 'red' }, new Map([['input', factsOfItems(items)]]));
    expect(warningsOf(item('a', 30, 'nir'), item('b', 30, 'red'))).toEqual([]);
    expect(() => warningsOf(item('a', 30, 'nir'), item('b', 31, 'red'))).toThrow(/resample one of them first/);
    expect(warningsOf(item('a', 30, 'nir', 'pan'), item('b', 31, 'red'))).toEqual([
      expect.stringMatching(/^By the catalog, nir and red do not lie on the same pixels/),
    ]);
  });

  test('what only the data can tell is no reason to refuse: the answer says so', async () => {
    for (const bandA of ['thermal', 'B5', 'nir08', 'olinda_nir'])
      expect(await ask('runs/check', { stepId: 'ndvi', parameters: { bandA }, input: olinda })).toMatchObject({
        status: 200,
        body: { warnings: [expect.stringContaining(`"${bandA}"; the input has blue, green, red, nir`) as string] },
      });
    expect((await ask('runs/check', { stepId: 'ndvi', input: olinda })).body['warnings']).toEqual([]);
  });

  test('a scene as it comes, its quality band among the others: a band that it lacks is known before', async () => {
    const folder = await testFolder();
    const [platform, app] = await sandboxOf(folder, ['B4', 'B5', 'BQA']);
    const { session: user } = await launchApp(platform, app);
    const answer = await user.post('api/items/search', { collections: ['scene'] });
    const [item] = ((await answer.json()) as { items: { itemId: string }[] }).items;
    const check = async (index: string) =>
      (
        await user.post('api/runs/check', {
          stepId: 'spectral-index',
          parameters: { index },
          input: itemOf('scene', item!.itemId),
        })
      ).status;
    expect([await check('NDVI'), await check('NBR')]).toEqual([200, 400]);
  });

  test('whoever asks for many checks at once waits for their answers', async () => {
    await writeFile(join(inputDir, 'looked-into.tif'), geoTiff({ width: 30, height: 20, value: (x) => x }));
    const input = { type: 'local', path: 'looked-into.tif' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('runs/check', { stepId: 'cog', input })));
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].sort()).toEqual([200, 429]);
    expect((await ask('runs/check', { stepId: 'ndvi', input: olinda })).status).toBe(200);
  });

  test('the list of items says their bands, and why one does not fit', async () => {
    const { body } = await ask('runs/check', { stepId: 'ndvi', input: olinda });
    expect(body).toMatchObject({ parameters: { bandA: 'nir', bandB: 'red' } });
    const answer = await session.post('api/items/search', {
      collections: ['olinda-coast', 'jacksboro-fault'],
      stepId: 'ndvi',
    });
    const { items } = (await answer.json()) as {
      items: { itemId: string; bands: string[]; incompatibility: string | null }[];
    };
    expect(
      Object.fromEntries(items.map(({ itemId, bands, incompatibility }) => [itemId, { bands, incompatibility }])),
    ).toEqual({
      'olinda-landsat7': { bands: ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'], incompatibility: null },
      'jacksboro-dem': { bands: ['elevation'], incompatibility: expect.stringContaining('heightmap') as string },
    });
  });
});

describe('an estimate', () => {
  test('is on the answer of a check, in the run, and in the operation that the user reads', async () => {
    const body = { stepId: 'ndvi', input: { type: 'synthetic', size: 2048 } };
    const inWords = 'About 13 MB of output, 1 s of processing and 340 MB of memory.';
    expect((await ask('runs/check', body)).body['estimate']).toMatchObject({
      outputBytes: 13_421_773,
      inWords,
    });
    const { id } = await session.start(body);
    const run = await session.waitFor(id, 'AWAITING_APPROVAL');
    expect(run.estimate).toMatchObject({ outputBytes: 13_421_773 });
    const [operation] = (await operations()) as unknown as { description: string }[];
    expect(operation?.description).toMatch(new RegExp(`near infrared\\. ${inWords}$`));
    await session.post(`api/runs/${id}/cancel`);
  });

  test('that fails, or is no number, keeps nobody from the run', async () => {
    const [scale] = myApp.steps.filter(({ id }) => id === 'scale');
    const estimates = [() => ({ outputBytes: NaN, seconds: 1, memoryBytes: 1 }), () => JSON.parse('{') as never];
    for (const estimate of estimates) {
      const logged: string[] = [];
      const log = pino({ level: 'error' }, { write: (line: string) => void logged.push(line) });
      const app = await startApp(sandbox.url, { definition: { ...myApp, steps: [{ ...scale!, estimate }] }, log });
      const launched = await launchApp(sandbox, app);
      const answer = await launched.session.post('api/runs/check', { ...smallRun, stepId: 'scale' });
      expect([answer.status, ((await answer.json()) as { estimate: null }).estimate]).toEqual([200, null]);
      expect(logged.join()).toContain('the estimate of step scale failed');
    }
  });
});

test('a run whose step has another version by now fails, says so, and processes nothing', async () => {
  const dataDir = await testFolder();
  const app = await startApp(sandbox.url, { dataDir });
  const before = await launchApp(sandbox, app);
  const run = await before.session.start(smallRun);
  const { operationId } = await before.session.waitFor(run.id, 'AWAITING_APPROVAL');
  await app.close();
  const later = { ...myApp, steps: myApp.steps.map((step) => ({ ...step, version: '9.0.0' })) };
  const again = await startApp(sandbox.url, { dataDir, definition: later });
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const now = await fetchRun(again.url, before, run.id);
  expect(now).toMatchObject({
    state: 'FAILED',
    failure: {
      code: 'step_version_gone',
      message: 'cog 1.1.0 was approved, and the app has cog 9.0.0 by now: nothing was processed',
      advice: expect.stringContaining('Start a new run') as string,
    },
  });
  expect((await sandbox.trace(before.launchId)).filter(({ endpoint }) => endpoint.startsWith('upload.'))).toEqual([]);
});

/** The same session at an app that has started again, on another port. */
async function fetchRun(url: string, { session: { cookie, home } }: Awaited<ReturnType<typeof launchApp>>, id: string) {
  let run: { state: string } = { state: '' };
  await expect
    .poll(
      async () => {
        const answer = await fetch(new URL(`${new URL(home).pathname}api/runs/${id}`, url), { headers: { cookie } });
        run = (await answer.json()) as { state: string };
        return run.state;
      },
      { timeout: 900_000 },
    )
    .toMatch(/FAILED|COMPLETED/);
  return run;
}

describe('for those who write steps', () => {
  const withBadSteps = async (options: StartAppOptions = {}) => {
    const logged: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(line) });
    const app = await startApp(sandbox.url, { definition: badSteps, log, ...options });
    const { session: user } = await launchApp(sandbox, app);
    const finish = async (stepId: string) => {
      const { id } = await user.start({ ...smallRun, stepId });
      const { operationId } = await user.waitFor(id, 'AWAITING_APPROVAL');
      await sandbox.control('POST', `operations/${operationId}/approve`);
      return { id, operationId };
    };
    return { user, logged, finish };
  };

  test("what a step prints is in the log beside its run's id, in plain characters, and has an end", async () => {
    const { user, logged, finish } = await withBadSteps();
    const { id } = await finish('talkative');
    await user.waitFor(id, 'COMPLETED');
    const printed = logged
      .map((line) => JSON.parse(line) as { msg: string; text?: string; runId?: string })
      .filter(({ msg }) => msg.startsWith('the step print'));
    expect(printed.every(({ runId }) => runId === id)).toBe(true);
    const texts = printed.map(({ text = '' }) => text);
    expect(texts).toContain('one line in red and a bell');
    expect(texts).toContain('line 0');
    expect(Math.max(...texts.map((text) => text.length))).toBe(2_000);
    expect(printed).toHaveLength(201);
    expect(printed.at(-1)?.msg).toBe('the step prints more, which is left out');
  });

  test.each([
    ['true', true],
    ['false', false],
  ])('with SHOW_DEFECTS=%s the page shows the stack of a mistake: %s', async (SHOW_DEFECTS, isShown) => {
    const { user, finish } = await withBadSteps({ env: { SHOW_DEFECTS } });
    const { id } = await finish('throwing');
    const { failure } = await user.waitFor(id, 'FAILED');
    expect(failure).toMatchObject({ code: 'step_defect' });
    expect(/a defect of the step\n +at .*bad-steps\.ts/.test(failure?.stack ?? '')).toBe(isShown);
    const page = await (await user.get(`runs/${id}`)).text();
    expect(page.includes('bad-steps.ts')).toBe(isShown);
  });

  test('a debugger attaches to a step, which waits for it', async () => {
    const port = await freePort();
    const { user, finish } = await withBadSteps({
      env: { STEP_INSPECT: String(port), STEP_CONFINEMENT: 'none' },
      confinement: await testConfinement('none'),
    });
    const { id } = await finish('throwing');
    const target = await expect
      .poll(
        () =>
          fetch(`http://127.0.0.1:${port}/json/list`).then(
            (answer) => answer.json(),
            () => null,
          ),
        {
          timeout: 900_000,
        },
      )
      .toMatchObject([{ webSocketDebuggerUrl: expect.stringContaining(String(port)) as string }])
      .then(async () => ((await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as Target[])[0]!);
    expect((await user.run(id)).state).toBe('PROCESSING');
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    for (const [i, method] of [
      'Runtime.enable',
      'Debugger.enable',
      'Runtime.runIfWaitingForDebugger',
      'Debugger.resume',
    ].entries())
      socket.send(JSON.stringify({ id: i, method }));
    socket.addEventListener('message', ({ data }) => {
      if (String(data).includes('Debugger.paused')) socket.send(JSON.stringify({ id: 99, method: 'Debugger.resume' }));
    });
    await user.waitFor(id, 'FAILED');
    socket.close();
  });
});

interface Target {
  readonly webSocketDebuggerUrl: string;
}

test('a step that needs more than the one process has is refused by the check and by the start', async () => {
  const steps = [{ ...ndvi, requires: { label: 'gpu' } }];
  const app = await startApp(sandbox.url, { definition: { ...myApp, steps } });
  const { session: own } = await launchApp(sandbox, app);
  for (const path of ['runs/check', 'runs']) {
    const answer = await own.post(`api/${path}`, { stepId: 'ndvi', input: { type: 'synthetic', size: 64 } });
    expect(answer.status, path).toBe(503);
    expect(await answer.json(), path).toMatchObject({
      ...{ code: 'no_fitting_worker' },
      error: expect.stringMatching(/^the app has no worker with the label gpu and /) as string,
    });
  }
});

test('a run shows what it has used, and not on which machine', async () => {
  const { id } = await session.start(smallRun);
  const { operationId } = await until(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const run = await until(id, 'COMPLETED');
  expect(run.usage).toMatchObject({ bytesIn: 0, bytesOut: run.output!.sizeBytes });
  expect(run.usage!.cpuSeconds).toBeGreaterThan(0);
  expect(run.usage!.peakMemoryBytes).toBeGreaterThan(20 * 2 ** 20);
  expect(run.usage).not.toHaveProperty('place');
  const page = await (await session.get(`runs/${id}`)).text();
  expect(page).toContain('<h2>Resources</h2>');
});

const until = (id: string, state: string) =>
  vi.waitFor(
    async () => {
      const run = await session.run(id);
      expect(run.state).toBe(state);
      return run;
    },
    { timeout: 60_000, interval: 100 },
  );

describe('names', () => {
  test('a run and its operation are named after the step, the item and its day', async () => {
    const { body } = await ask('runs', { stepId: 'ndvi', parameters: {}, input: olinda });
    expect(body['name']).toBe('Normalized difference (NDVI) · Olinda, Landsat 7 · 1 Jul 2002');
    await session.waitFor(String(body['id']), 'AWAITING_APPROVAL');
    expect((await operations()).map(({ name }) => name)).toContain(body['name']);
  });

  test('the longest name of a file makes a name that the platform takes', async () => {
    const fileName = `${'ä'.repeat(120)}.tif`;
    await writeFile(join(inputDir, fileName), geoTiff({ width: 20, height: 10, value: (x) => x }));
    const { body } = await ask('runs', { stepId: 'cog', parameters: {}, input: { type: 'local', path: fileName } });
    expect(body['name']).toMatch(/^Cloud Optimized GeoTIFF · ä+/);
    await session.waitFor(String(body['id']), 'AWAITING_APPROVAL');
    const long = nameOf('Step', '😀'.repeat(300));
    expect([...long]).toHaveLength(200);
    expect(long.isWellFormed()).toBe(true);
  });

  test('an item is led to the first analysis that fits it, and the others say why they do not', async () => {
    const go = async (item: string) => {
      const answer = await fetch(new URL(`./?item=${item}`, session.home), {
        headers: { cookie: session.cookie },
        redirect: 'manual',
      });
      return [answer.status, answer.headers.get('location')];
    };
    const base = new URL(session.home).pathname;
    expect(await go('olinda-coast%2Folinda-landsat7')).toEqual([
      303,
      `${base}new/ndvi?item=olinda-coast%2Folinda-landsat7`,
    ]);
    // An item that nobody has: all steps are there to choose from.
    expect((await go('olinda-coast%2Fnothing'))[0]).toBe(200);
    const form = await session.get('new/ndvi?item=olinda-coast%2Folinda-landsat7');
    const page = await form.text();
    expect(page).toMatch(/<optgroup label="Do not fit the item">[^]*Hillshade: is multispectral/);
    expect(page).toMatch(/<optgroup label="Fit the item">[^]*Normalized difference/);
  });
});
