/** `--import`: files of items, rasters, and folders of them. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { testFolder, landsatFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startSandbox } from '../support/sandbox.ts';
import { get, ids, item, sandboxWith, search, type StacItem } from '../support/stac.ts';
import { landsat, needing } from '../support/needs.ts';

const quiet = { onProgress: () => {}, onRefused: () => {} };

describe('items', () => {
  test('keep what they say; what the spec wants besides is filled in', async () => {
    const sandbox = await sandboxWith([
      item('x', {
        title: 'Source 7',
        properties: { custom: { deep: [1] }, 'view:sun_azimuth': 120, description: null },
      }),
    ]);
    const { properties, title, bbox } = await get<StacItem>(sandbox, '/public/stac/collections/a/items/x');
    expect([title, bbox]).toEqual(['Source 7', [10, 50, 11, 51]]);
    expect(properties).toMatchObject({
      custom: { deep: [1] },
      'view:sun_azimuth': 120,
      'view:off_nadir': 0,
      description: '',
      layer_type: 'RASTER',
      source_type: 'UNKNOWN',
      'platform:source_sub_type': 'DEFAULT',
    });
  });

  test('a line that is none is left out and told with its number; the others are taken', async () => {
    const deep = JSON.parse(`${'['.repeat(1_100)}${']'.repeat(1_100)}`) as unknown;
    const bad: [string | object, string][] = [
      ['{', 'is not JSON'],
      [
        { ...item('a'), properties: { datetime: '2024-01-01T00:00:00Z', deep } },
        'properties must not be nested deeper than 500 levels',
      ],
      ['[]', 'the line must be an object'],
      [{ ...item('a'), id: '' }, 'id must be'],
      [{ ...item('a'), collection: undefined }, 'collection must be'],
      [item('a', { datetime: '2024-02-30T00:00:00Z' }), 'properties.datetime must be'],
      [
        item('a', {
          ring: [
            [0, 0],
            [1, 0],
            [1, 1],
          ],
        }),
        'geometry must have closed rings',
      ],
      [item('a', { geometry: { type: 'Point', coordinates: [0, 0] } }), 'geometry must be a Polygon'],
      [item('a', { properties: { 'view:off_nadir': 100 } }), 'properties.view:off_nadir'],
      [item('a', { properties: { 'sar:colour': 'red' } }), 'properties.sar:colour is no property'],
    ];
    const sandbox = await sandboxWith([item('first'), ...bad.map(([line]) => line as object), item('last')]);
    expect(await ids(sandbox)).toEqual(['first', 'last']);
    expect(sandbox.refused).toHaveLength(bad.length);
    for (const [i, [, reason]] of bad.entries()) expect(sandbox.refused[i]).toContain(`line ${i + 2}: ${reason}`);
  });

  test("a source outside of the items' own folder is not theirs to give", async () => {
    const folder = await testFolder();
    await writeFile(join(folder, 'secret.tif'), 'secret');
    await mkdir(join(folder, 'items'));
    await writeFile(join(folder, 'items', 'own.tif'), 'own');
    await symlink(join(folder, 'secret.tif'), join(folder, 'items', 'link.tif'));
    const hrefs = ['../secret.tif', join(folder, 'secret.tif'), 'link.tif', '/etc/hostname', '.', 'own.tif'];
    const lines = hrefs.map((href, i) => JSON.stringify({ ...item(`i${i}`), assets: { data: { href } } }));
    await writeFile(join(folder, 'items', 'items.ndjson'), lines.join('\n'));
    const sandbox = await startSandbox({
      prepare: async (made) => void (await made.importPath(join(folder, 'items', 'items.ndjson'), quiet)),
    });
    const { features } = await search(sandbox, { sortby: [{ field: 'id' }] });
    const texts = await Promise.all(
      features.map(async ({ assets }) =>
        Buffer.from(await (await fetch(assets.data.href)).arrayBuffer()).toString('latin1'),
      ),
    );
    expect(texts.map((text) => /own\.tif|secret|hostname/.exec(text.slice(0, 60))?.[0])).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      'own.tif',
    ]);
  });

  test('the same id again replaces; the index follows', async () => {
    const sandbox = await sandboxWith([
      item('x'),
      item('y'),
      item('x', {
        ring: [
          [100, 0],
          [101, 0],
          [101, 1],
          [100, 0],
        ],
      }),
    ]);
    expect(await ids(sandbox)).toEqual(['x', 'y']);
    expect(await ids(sandbox, { bbox: [99, -1, 102, 2] })).toEqual(['x']);
    expect(await ids(sandbox, { bbox: [10, 50, 11, 51] })).toEqual(['y']);
  });

  test('survive a restart and a reset', async () => {
    const folder = await testFolder();
    const first = await sandboxWith([item('x')], { dataDir: folder });
    await first.control('POST', 'reset');
    expect(await ids(first)).toEqual(['x']);
    await first.close();
    expect(await ids(await startSandbox({ dataDir: folder }))).toEqual(['x']);
  });
});

describe('rasters', () => {
  test('a folder: each raster that says a place is an item, the others are told', async () => {
    const folder = join(await testFolder(), 'My Scenes');
    await mkdir(folder);
    await writeFile(join(folder, 'one.tif'), geoTiff({ width: 20, height: 10, value: (x) => x }));
    await writeFile(join(folder, 'broken.tif'), 'nothing');
    await writeFile(join(folder, 'readme.txt'), 'no raster');
    const refused: string[] = [];
    let result: unknown;
    const sandbox = await startSandbox({
      async prepare(made) {
        result = await made.importPath(folder, { ...quiet, onRefused: (where) => void refused.push(where) });
      },
    });
    expect([result, refused]).toEqual([{ imported: 1, refused: 1 }, ['broken.tif']]);
    const [found] = (await search(sandbox, { collections: ['my-scenes'] })).features;
    expect(found).toMatchObject({ id: 'one', title: 'one.tif' });
    expect((await fetch(found!.assets.rendered_preview.href)).status).toBe(200);
    expect((await fetch(found!.assets.data.href)).status).toBe(200);
  });

  test('what is neither: a clear error', async () => {
    const folder = await testFolder();
    await startSandbox({
      async prepare(made) {
        await expect(made.importPath(join(folder, 'nothing'), quiet)).rejects.toThrow('does not exist');
        await expect(made.importPath(folder, quiet)).rejects.toThrow('give items');
      },
    });
  });

  test('the Landsat crop lies on the Gulf coast', needing(landsat), async () => {
    const sandbox = await startSandbox({
      prepare: async (made) => void (await made.importPath(join(landsatFolder, 'l8_B4.tif'), quiet)),
    });
    const [found] = (await search(sandbox, { collections: ['landsat8'], bbox: [-87.5, 30.7, -87.4, 30.75] })).features;
    expect(found!.bbox.map((value) => Math.round(value * 100) / 100)).toEqual([-87.5, 30.65, -87.3, 30.81]);
  });
});

test('files of one name in different folders are imported each', async () => {
  const folder = await testFolder();
  for (const [name, x] of [
    ['a', 500_000],
    ['b', 600_000],
  ] as const) {
    await mkdir(join(folder, name));
    await writeFile(
      join(folder, name, 'B04.tif'),
      geoTiff({ width: 20, height: 10, value: () => 1, origin: [x, 5_000_000, 30] }),
    );
  }
  let result: unknown;
  await startSandbox({ prepare: async (made) => void (result = await made.importPath(folder, quiet)) });
  expect(result).toEqual({ imported: 2, refused: 0 });
});
