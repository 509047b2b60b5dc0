// @module-tag all
/** `--import` of a folder of a scene: its bands are one item that says when, by whom and how cloudy. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import yauzl from 'yauzl';
import { testFolder, landsatFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { startSandbox } from '../support/sandbox.ts';
import { get, search, type StacItem } from '../support/stac.ts';
import { landsat, needing } from '../support/needs.ts';

const band = (at: Partial<Parameters<typeof geoTiff>[0]> = {}) =>
  geoTiff({ width: 24, height: 16, value: (x, y) => 1_000 + 40 * x + 3 * y, ...at });
const coarse = { width: 12, height: 8, origin: [500_000, 5_000_000, 60] } as const;

const landsatMetadata = `GROUP = L1_METADATA_FILE
  GROUP = METADATA_FILE_INFO
    LANDSAT_SCENE_ID = "LC80200392015216LGN00"
  END_GROUP = METADATA_FILE_INFO
    SPACECRAFT_ID = "LANDSAT_8"
    SENSOR_ID = "OLI_TIRS"
    DATE_ACQUIRED = 2015-08-04
    SCENE_CENTER_TIME = "16:19:21.7917421Z"
    CLOUD_COVER = 11.08
    SUN_AZIMUTH = -44.5
    REFLECTANCE_MULT_BAND_4 = 2.0000E-05
    REFLECTANCE_ADD_BAND_4 = -0.100000
END_GROUP = L1_METADATA_FILE
END
`;
const sentinelMetadata = `<?xml version="1.0" encoding="UTF-8"?>
<n1:Level-2A_User_Product xmlns:n1="https://psd-14.sentinel2.eo.esa.int/PSD/User_Product_Level-2A.xsd">
  <n1:General_Info><Product_Info>
    <PRODUCT_URI>S2B_MSIL2A_20240301T101029_N0510_R022_T33UUP_20240301T130000.SAFE</PRODUCT_URI>
    <Datatake datatakeIdentifier="x"><SPACECRAFT_NAME>Sentinel-2B</SPACECRAFT_NAME><DATATAKE_SENSING_START>2024-03-01T10:10:29.024Z</DATATAKE_SENSING_START></Datatake>
  </Product_Info></n1:General_Info>
  <n1:Image><BOA_QUANTIFICATION_VALUE unit="none">10000</BOA_QUANTIFICATION_VALUE><BOA_ADD_OFFSET band_id="3">-1000</BOA_ADD_OFFSET></n1:Image>
  <n1:Quality_Indicators_Info><Cloud_Coverage_Assessment>37.25</Cloud_Coverage_Assessment></n1:Quality_Indicators_Info>
</n1:Level-2A_User_Product>`;

/** A folder of these files; relative names with folders of their own. */
async function folderOf(name: string, files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const folder = join(await testFolder(), name);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

async function imported(folder: string, collection: string) {
  const refused: string[] = [];
  let result: unknown;
  const sandbox = await startSandbox({
    env: { SANDBOX_STAC_STRICT: 'false' },
    async prepare(made) {
      result = await made.importPath(folder, { onProgress: () => {}, onRefused: (where) => void refused.push(where) });
    },
  });
  return { sandbox, result, refused, items: (await search(sandbox, { collections: [collection] })).features };
}

async function namesInZip(bytes: Buffer): Promise<string[]> {
  const archive = await yauzl.fromBufferPromise(bytes);
  const names: string[] = [];
  for await (const entry of archive.eachEntry()) names.push(entry.fileName);
  return names;
}

const bytesOf = async (href: string) => Buffer.from(await (await fetch(href)).arrayBuffer());

describe('rasters whose names meet', () => {
  test('names of any script, and names that differ in signs alone, are items of their own', async () => {
    const names = ['北京.tif', '上海.tif', 'a b.tif', 'a_b.tif', 'Ä-1.tif', 'Ö-1.tif', 'dem.tif', 'dem.tiff'];
    const folder = await folderOf('names', Object.fromEntries(names.map((name) => [name, band()])));
    const { items, result } = await imported(folder, 'names');
    expect(result).toEqual({ imported: 8, refused: 0 });
    expect(items.map(({ title }) => title.normalize('NFC')).toSorted()).toEqual(names.toSorted());
  });
  test('folders of one name do not replace each other, and an import replaces its own items', async () => {
    const folders = [
      await folderOf('2023/tiles', { 'a.tif': band() }),
      await folderOf('2024/tiles', { 'a.tif': band() }),
    ];
    const sandbox = await startSandbox({
      env: { SANDBOX_STAC_STRICT: 'false' },
      async prepare(made) {
        for (const folder of [...folders, ...folders])
          await made.importPath(folder, { onProgress: () => {}, onRefused: () => {} });
      },
    });
    const { features } = await search(sandbox, { collections: ['tiles'] });
    expect(features.map(({ id }) => id).toSorted()).toEqual(['a', 'a-2']);
  });
});

describe('Landsat', () => {
  test('the bands of one grid are one item, with what the metadata file says; another resolution is one of its own', async () => {
    const folder = await folderOf('Scene 8', {
      'l8_B4.tif': band(),
      'l8_B2.tif': band(),
      'l8_B10.tif': band(),
      'l8_B3.tif': band(),
      'l8_B8.tif': band({ width: 48, height: 32, origin: [500_000, 5_000_000, 15] }),
      'l8_MTL.txt': landsatMetadata,
      'dem.tif': band(),
    });
    const { sandbox, items, result, refused } = await imported(folder, 'scene-8');
    expect([result, refused]).toEqual([{ imported: 3, refused: 0 }, []]);
    const [scene, pan] = ['lc80200392015216lgn00', 'lc80200392015216lgn00-15m'].map((id) =>
      items.find((one) => one.id === id),
    );
    expect(pan!.properties).toMatchObject({
      name: 'Landsat 8, 2015-08-04, 15 m',
      'import:files': ['l8_B8.tif'],
      gsd: 15,
    });
    expect(scene).toMatchObject({
      title: 'LC80200392015216LGN00',
      properties: {
        datetime: '2015-08-04T16:19:21.791Z',
        name: 'Landsat 8, 2015-08-04',
        platform: 'landsat-8',
        instruments: ['oli', 'tirs'],
        'eo:cloud_cover': 11.08,
        'view:sun_azimuth': 315.5,
        source_type: 'MULTISPECTRAL',
        'import:files': ['l8_B2.tif', 'l8_B3.tif', 'l8_B4.tif', 'l8_B10.tif'],
      },
    });
    expect(scene!.properties['description']).toContain('blue (B2), green (B3), red (B4), lwir11 (B10)');
    expect(await namesInZip(await bytesOf(scene!.assets.data.href))).toEqual([
      'l8_B2.tif',
      'l8_B3.tif',
      'l8_B4.tif',
      'l8_B10.tif',
    ]);
    const { features } = await get<{
      features: (Pick<StacItem, 'id'> & { assets: Record<string, { href: string; title: string }> })[];
    }>(sandbox, '/public/stac/search?collections=scene-8');
    const { assets } = features.find(({ id }) => id === scene!.id)!;
    expect(assets['B4']).toMatchObject({ title: 'red (B4)', 'proj:epsg': 32633, 'proj:shape': [16, 24] });
    expect((await bytesOf(assets['B4']!.href)).equals(band())).toBe(true);
    expect((await fetch(assets['B4']!.href.replace('band=B4', 'band=B2'))).status).toBe(403);
  });

  test('a picture in its true colours', async () => {
    const only = (from: number) => band({ value: (x) => (x >= from && x < from + 8 ? 9_000 : 100) });
    const folder = await folderOf('rgb', {
      'x_B4.tif': only(0),
      'x_B3.tif': only(8),
      'x_B2.tif': only(16),
      'x_B5.tif': band(),
    });
    const [item] = (await imported(folder, 'rgb')).items as [StacItem];
    const sharp = (await import('sharp')).default;
    const { data, info } = await sharp(await bytesOf(item.assets.rendered_preview.href))
      .raw()
      .toBuffer({ resolveWithObject: true });
    const at = (share: number) =>
      [...data.subarray((Math.floor(info.height / 2) * info.width + Math.floor(info.width * share)) * info.channels)]
        .slice(0, 3)
        .map((value) => value > 128);
    expect([at(0.17), at(0.5), at(0.83)]).toEqual([
      [true, false, false],
      [false, true, false],
      [false, false, true],
    ]);
  });

  test("bands of Landsat 7 are counted in their own way, by the scene's name or its metadata", async () => {
    const byName = await imported(
      await folderOf('etm', { 'LE07_L1TP_x_B3.TIF': band(), 'LE07_L1TP_x_B4.TIF': band() }),
      'etm',
    );
    expect(byName.items[0]!.properties['description']).toContain('red (B3), nir (B4)');
    const metadata = landsatMetadata.replace('LANDSAT_8', 'LANDSAT_5').replace('"OLI_TIRS"', '"TM"');
    const byMetadata = await imported(
      await folderOf('tm', { 'a_B3.TIF': band(), 'a_B4.TIF': band(), 'a_MTL.txt': metadata }),
      'tm',
    );
    expect(byMetadata.items[0]!.properties).toMatchObject({
      platform: 'landsat-5',
      instruments: ['tm'],
      description: expect.stringContaining('red (B3), nir (B4)') as string,
    });
    // Anyone who unpacks the files has only their names to go by.
    expect(await namesInZip(await bytesOf(byMetadata.items[0]!.assets.data.href))).toEqual([
      'LT05_a_B3.TIF',
      'LT05_a_B4.TIF',
    ]);
    const scanner = await imported(
      await folderOf('mss', { 'a_B3.TIF': band(), 'a_B4.TIF': band(), 'a_MTL.txt': metadata.replace('"TM"', '"MSS"') }),
      'mss',
    );
    expect(scanner.items[0]!.properties['description']).toContain('2 bands: B3, B4;');
  });

  test('several scenes in one folder have each their own metadata, also where their names say more than its', async () => {
    const of = (id: string) => landsatMetadata.replace('LC80200392015216LGN00', id);
    const folder = await folderOf('many', {
      'LC08_A_T1_SR_B3.TIF': band(),
      'LC08_A_T1_SR_B4.TIF': band(),
      'LC08_A_T1_MTL.txt': of('SCENE_A'),
      'LC08_A_T1_MTL.json': '{}',
      'LC08_B_B3.TIF': band(),
      'LC08_B_B4.TIF': band(),
      'LC08_B.tif': band(),
      'deeper/LC08_C_B3.TIF': band(),
      'deeper/LC08_C_B4.TIF': band(),
      'deeper/MTL.txt': of('SCENE_C'),
    });
    const { items } = await imported(folder, 'many');
    expect(items.map(({ id, properties }) => [id, properties['platform']]).sort()).toEqual([
      ['lc08-b', undefined],
      ['lc08-b-30m', undefined],
      ['scene-a', 'landsat-8'],
      ['scene-c', 'landsat-8'],
    ]);
  });

  test('imported again, items replace themselves', async () => {
    const folder = await folderOf('again', {
      'MTL.txt': landsatMetadata,
      'a_B3.tif': band(),
      'a_B4.tif': band(),
      'b_B3.tif': band(),
      'b_B4.tif': band(),
      'c_B3.tif': band(),
      'c_B4.tif': band(),
    });
    const dataDir = await testFolder();
    for (let n = 0; n < 2; n++) {
      const sandbox = await startSandbox({
        dataDir,
        prepare: async (made) => void (await made.importPath(folder, { onProgress: () => {}, onRefused: () => {} })),
      });
      expect((await search(sandbox, { collections: ['again'] })).features.map(({ id }) => id).sort()).toEqual([
        'lc80200392015216lgn00',
        'lc80200392015216lgn00-30m',
        'lc80200392015216lgn00-30m-2',
      ]);
      await sandbox.close();
    }
  });

  test('the crop in ../shared is one item of 2015-08-04', needing(landsat), async () => {
    const { items, result } = await imported(landsatFolder, 'landsat8');
    expect(result).toEqual({ imported: 1, refused: 0 });
    expect(items[0]).toMatchObject({
      id: 'lc80200392015216lgn00',
      properties: { name: 'Landsat 8, 2015-08-04', 'eo:cloud_cover': 11.08, gsd: 30 },
    });
    expect(items[0]!.properties['import:files']).toHaveLength(7);
    const { 'eo:bands': names, 'raster:bands': numbers } = items[0]!.properties as Record<string, { name: string }[]>;
    expect(numbers?.[names!.findIndex(({ name }) => name === 'B4')]).toEqual({
      scale: 0.00002,
      offset: -0.1,
      nodata: 0,
    });
  });
});

test('Sentinel-2: an item for each resolution, the metadata of the folder above', async () => {
  const folder = await folderOf('safe', {
    'MTD_MSIL2A.xml': sentinelMetadata,
    'GRANULE/IMG/R10m/T33UUP_B02_10m.tif': band(),
    'GRANULE/IMG/R10m/T33UUP_B04_10m.tif': band(),
    'GRANULE/IMG/R10m/T33UUP_B08_10m.tif': band(),
    'GRANULE/IMG/R20m/T33UUP_B05_20m.tif': band(coarse),
    'GRANULE/IMG/R20m/T33UUP_B8A_20m.tif': band(coarse),
  });
  const { items, result } = await imported(folder, 'safe');
  expect(result).toEqual({ imported: 2, refused: 0 });
  expect(items.map(({ properties }) => properties['description']).sort()).toEqual([
    expect.stringContaining('rededge071 (B05), nir08 (B8A)'),
    expect.stringContaining('blue (B02), red (B04), nir (B08)'),
  ]);
  const fine = items.find(({ properties }) => String(properties['description']).includes('red (B04)'))!;
  // B02, B04 and B08 in their order: -1000 is added to B04 before the division.
  expect(fine.properties['raster:bands']).toEqual([
    { scale: 0.0001, offset: 0, nodata: 0 },
    { scale: 0.0001, offset: -0.1, nodata: 0 },
    { scale: 0.0001, offset: 0, nodata: 0 },
  ]);
  for (const { properties } of items)
    expect(properties).toMatchObject({
      datetime: '2024-03-01T10:10:29.024Z',
      platform: 'sentinel-2b',
      'eo:cloud_cover': 37.25,
      instruments: ['msi'],
    });
});

test('a STAC item beside the bands', async () => {
  const stac = {
    type: 'Feature',
    stac_version: '1.0.0',
    id: 'A scene',
    properties: { datetime: '2020-02-03T04:05:06Z', platform: 'some-satellite', 'eo:cloud_cover': 3 },
    geometry: null,
    links: [],
    assets: {},
  };
  const { items } = await imported(
    await folderOf('stac', {
      'a_B3.tif': band(),
      'a_B4.tif': band(),
      'a.json': JSON.stringify(stac),
      'other.json': '{"no": "item"}',
    }),
    'stac',
  );
  expect(items[0]).toMatchObject({
    id: 'a-scene',
    title: 'A scene',
    properties: { datetime: '2020-02-03T04:05:06.000Z', platform: 'some-satellite', 'eo:cloud_cover': 3 },
  });
});

describe('what is not as it seems', () => {
  test.each<[string, Record<string, string | Buffer>]>([
    [
      'XML that expands a billion times',
      {
        'MTD_MSIL2A.xml': `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, i) => `<!ENTITY ${'abcdefghij'[i + 1]} "${`&${'abcdefghij'[i]};`.repeat(10)}">`).join('')}]><a><SPACECRAFT_NAME>&j;</SPACECRAFT_NAME></a>`,
      },
    ],
    [
      'XML that names a file',
      {
        'MTD_MSIL2A.xml':
          '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><SPACECRAFT_NAME>&x;</SPACECRAFT_NAME></a>',
      },
    ],
    [
      'JSON that is nested deep',
      { 'a.json': `{"type":"Feature","stac_version":"1","properties":${'['.repeat(100_000)}` },
    ],
    ['eight million empty lines', { 'a_MTL.txt': '\n'.repeat(8_000_000), 'a.json': `{${' '.repeat(7_000_000)}` }],
    ['a text without lines', { 'a_MTL.txt': 'SPACECRAFT_ID = '.repeat(300_000) }],
    [
      'numbers out of all bounds',
      {
        'a_MTL.txt': landsatMetadata
          .replace('11.08', '-1')
          .replace('2015-08-04', '275760-99-99')
          .replace('-44.5', '1e999'),
      },
    ],
  ])('%s: the bands are imported all the same, in time', async (_name, files) => {
    const { items, result } = await imported(
      await folderOf('odd', { ...files, 'a_B3.tif': band(), 'a_B4.tif': band() }),
      'odd',
    );
    expect(result).toEqual({ imported: 1, refused: 0 });
    const properties = items[0]!.properties as Record<string, unknown>;
    expect([properties['eo:cloud_cover'], properties['view:sun_azimuth']]).toEqual([undefined, undefined]);
    expect(JSON.stringify(items[0])).not.toMatch(/root:|aaaaaaaaaaa/);
  });

  test('a band that is damaged is told, the others are the item; bands alone, and of other folders, stay apart', async () => {
    const folder = await folderOf('mixed', {
      'a_B3.tif': band(),
      'a_B4.tif': 'no raster',
      'a_B5.tif': band(),
      'b/a_B3.tif': band(),
      'b/other_B4.tif': band(),
    });
    const { items, refused } = await imported(folder, 'mixed');
    expect(refused).toEqual(['a_B4.tif']);
    expect(
      items
        .map(({ properties }) => properties['import:files'])
        .map(String)
        .sort(),
    ).toEqual(['a_B3.tif', 'a_B3.tif,a_B5.tif', 'other_B4.tif']);
  });
});
