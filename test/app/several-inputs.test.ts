// @module-tag all
/** A step with several inputs: each chosen, checked, fetched and opened by its name. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { launchApp, startApp } from '../support/app.ts';
import { geoTiff } from '../support/geotiff.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';
import severalInputs from '../support/several-inputs.ts';
import { startStepHost } from '../support/step-host.ts';
import { confined, needing } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

const isConfined = await confined();

const zones = JSON.stringify({
  type: 'FeatureCollection',
  features: ['a', 'b'].map((zone) => ({
    type: 'Feature',
    properties: { zone },
    geometry: { type: 'Polygon', coordinates: [[[15, 45], [15.1, 45], [15.1, 45.1], [15, 45]]] }, // oxfmt-ignore
  })),
});

/** `before` and `after`, with files of the same names, and features. */
async function populated(more: { readonly workFolder?: string } = {}) {
  const host = await startStepHost({ definition: severalInputs, keepsChildren: true, ...more });
  for (const [folder, value, names] of [
    ['before', 10, ['B3', 'B4', 'B5']],
    ['after', 30, ['B4', 'B5']],
  ] as const) {
    await mkdir(join(host.inputDir, folder));
    for (const name of names)
      await writeFile(
        join(host.inputDir, folder, `LC08_L1TP_${name}.TIF`),
        geoTiff({ width: 8, height: 8, value: () => value + Number(name.slice(1)) }),
      );
  }
  await writeFile(join(host.inputDir, 'zones.geojson'), zones);
  await writeFile(join(host.inputDir, 'no-zones.geojson'), 'none');
  return host;
}
const local = (path: string) => ({ type: 'local', path }) as const;
const named = (inputs: Record<string, ReturnType<typeof local>>) => ({ type: 'named', inputs }) as const;

describe("a run of the app's own files", async () => {
  const reportOf = async (inputs: Record<string, ReturnType<typeof local>>) => {
    const { run } = await populated();
    return JSON.parse(await readFile((await run('compares', named(inputs))).path, 'utf8')) as unknown;
  };
  test("finds each input by its name, and files of one name do not get in each other's way", async () => {
    expect(await reportOf({ before: local('before'), after: local('after') })).toEqual({
      before: 3,
      isMain: true,
      means: [15, 35],
      files: ['LC08_L1TP_B3.TIF', 'LC08_L1TP_B4.TIF'],
      zones: null,
    });
  });
  test('has features where they are given', async () => {
    const all = { zones: local('zones.geojson'), before: local('before'), after: local('after') };
    expect(await reportOf(all)).toMatchObject({ zones: ['a', 'b'], means: [15, 35] });
  });
  test('has a synthetic input for each, on one grid, that differ', async () => {
    const { run } = await populated();
    const { path } = await run('compares', { type: 'synthetic', size: 64 });
    const report = JSON.parse(await readFile(path, 'utf8')) as { means: number[]; zones: string[] };
    expect(report.zones).toEqual(['north-west', 'north-east', 'south-west', 'south-east']);
    expect(report.means[0]).not.toBe(report.means[1]);
  });
  test('a program finds its inputs by name', needing(isConfined), async () => {
    const { run } = await populated();
    await expect(
      run('by-command', named({ heights: local('before'), zones: local('zones.geojson') })),
    ).rejects.toMatchObject({ code: 'not_one_raster', message: 'the step takes one file as heights, the input has 3' });
    const input = named({ heights: local('before/LC08_L1TP_B3.TIF'), zones: local('zones.geojson') });
    const [given, files, bands] = JSON.parse(await readFile((await run('by-command', input)).path, 'utf8')) as [
      string[],
      Record<string, string[]>,
      string[][],
    ];
    expect(given).toEqual([files['heights']?.[0], files['zones']?.[0]]);
    expect(given.map((path) => path.split('/').at(-1))).toEqual(['LC08_L1TP_B3.TIF', 'zones.geojson']);
    expect(bands).toHaveLength(1);
  });
});

describe('nobody is asked to approve', () => {
  const both = { before: local('before'), after: local('after') };
  test.each([
    ['inputs without names', local('before'), /takes several inputs: name each \(before, after, zones\)/],
    ['a run without one of them', named({ before: local('before') }), /needs the input after: The later scene/],
    [
      'an input that the step has not',
      named({ ...both, during: local('before') }),
      /no input "during"; its inputs are/,
    ],
    ['features that are none', named({ ...both, zones: local('no-zones.geojson') }), /no GeoJSON/],
    [
      'a folder without features',
      named({ ...both, zones: local('before') }),
      /holds no features; looked for \.geojson/,
    ],
  ])('%s', async (_name, input, message) => {
    const { host } = await populated();
    await expect(host.check('compares', {}, input)).rejects.toMatchObject({
      message: expect.stringMatching(message) as string,
    });
  });
  test('a band that only the other input has', async () => {
    const { host } = await populated();
    await expect(host.check('compares', { band: 'green' }, named(both))).rejects.toMatchObject({
      code: 'invalid_parameters',
      details: [{ path: 'band', message: expect.stringContaining('no band has the name "green"') as string }],
    });
    expect((await host.check('compares', { band: 'red' }, named(both))).warnings).toEqual([]);
  });
});

test(
  'items of the platform: each input fetched for itself, features too; a search says what fits which input',
  { tags: [onlyInAll] },
  async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const app = await startApp(sandbox.url, { definition: severalInputs });
    const { session } = await launchApp(sandbox, app);
    const form = new FormData();
    form.append('file', new Blob([zones]), 'zones.geojson');
    const uploaded = await sandbox.request('POST', '/public/file/upload?sourceType=POLYGON', {
      body: form,
      headers: { 'x-api-key': apiKey },
    });
    expect(uploaded.status).toBe(200);
    const search = async (collection: string, input: string) => {
      const found = await session.post('api/items/search', {
        collections: [collection],
        limit: 5,
        stepId: 'compares',
        input,
      });
      return (await found.json()) as {
        items: { collectionId: string; itemId: string; incompatibility: string | null }[];
      };
    };
    const { collections } = (await (await session.get('api/collections')).json()) as { collections: { id: string }[] };
    const uploads = collections.find(({ id }) => id.startsWith('uploads-'))!.id;
    let vectors: Awaited<ReturnType<typeof search>>['items'] = [];
    while (vectors.length === 0) vectors = (await search(uploads, 'zones')).items;
    const { items } = await search('coastal-optical', 'before');
    expect([vectors[0]!.incompatibility, items[0]!.incompatibility]).toEqual([null, null]);
    expect((await search(uploads, 'before')).items[0]!.incompatibility).toMatch(/is polygon/);
    expect((await search('coastal-optical', 'zones')).items[0]!.incompatibility).toMatch(
      /is multispectral; Compares takes point/,
    );

    const platform = (...of: { collectionId: string; itemId: string }[]) => ({
      type: 'platform',
      items: of.map(({ collectionId, itemId }) => ({ collectionId, itemId })),
    });
    const wanted = (inputs: object) => ({ stepId: 'compares', input: { type: 'named', inputs } });
    const refused = await session.post(
      'api/runs/check',
      wanted({ before: platform(items[0]!), after: platform(items[1]!, items[2]!) }),
    );
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: expect.stringMatching(/at most 1 .* as After, not 2/) as string }]); // oxfmt-ignore
    const { id } = await session.start(
      wanted({ before: platform(items[0]!), after: platform(items[1]!), zones: platform(vectors[0]!) }),
    );
    const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
    const run = await session.waitFor(id, 'COMPLETED');
    expect(run.files).toHaveLength(1);
    const page = await (await session.get(`runs/${id}`)).text();
    expect(page).toContain(
      `before: coastal-optical/${items[0]!.itemId}; after: coastal-optical/${items[1]!.itemId}; zones:`,
    );
  },
);
