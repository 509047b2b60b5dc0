// @module-tag all
/** Each step of the kit: the delivered item, the file and the STAC item say what the inputs say. */
import gdal from 'gdal-async';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { RunView } from '../../src/app/runs/run-view.ts';
import type { StacItem } from '../../src/contract/index.ts';
import allSteps from '../support/all-steps.ts';
import { launchApp, startApp, type BrowserSession } from '../support/app.ts';
import { downloaded, key, processed } from '../support/files.ts';
import { makeFolder } from '../support/folders.ts';
import { faultsOf, hasExtensions } from '../support/stac.ts';
import { needing, unless } from '../support/needs.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const olinda = { collectionId: 'olinda-coast', itemId: 'olinda-landsat7' };
const jacksboro = { collectionId: 'jacksboro-fault', itemId: 'jacksboro-dem' };
const coast = ['coastal-optical-001', 'coastal-optical-005'].map((itemId) => ({ collectionId: 'coastal-optical', itemId })); // oxfmt-ignore

/** West, south, east, north of the inputs, in degrees, by gdalinfo. */
const places = {
  olinda: [-34.917, -8.0406, -34.825, -7.9502],
  jacksboro: [-84.41375, 36.15958, -84.07792, 36.44625],
} as const;
const times = { olinda: '2002-07-01T12:30:00.000Z', jacksboro: '2000-02-16T00:00:00.000Z' } as const;

/** A triangle within the scene of Olinda. */
const triangle = { type: 'Polygon', coordinates: [[[-34.9, -8.02], [-34.85, -8.02], [-34.87, -7.97], [-34.9, -8.02]]] }; // oxfmt-ignore
const collection = (geometry: object) =>
  JSON.stringify({ type: 'FeatureCollection', features: [{ type: 'Feature', properties: { name: 'a' }, geometry }] });

interface Expected {
  readonly from: 'olinda' | 'jacksboro';
  readonly parameters?: object;
  readonly title: string;
  /** One for each output. */
  readonly files: readonly { readonly name: string; readonly sourceType: string; readonly unit?: string }[];
  /** Set if the output is smaller than its input. */
  readonly isPart?: true;
  readonly zones?: true;
}

const scene = 'olinda-landsat7_2002-07-01';
const dem = 'jacksboro-dem_2000-02-16';
const of = (name: string, sourceType: string, unit?: string) => ({ name, sourceType, ...(unit && { unit }) });

const steps: Readonly<Record<string, Expected>> = {
  ndvi: { from: 'olinda', title: 'Normalized difference (NDVI)', files: [of(`ndvi_${scene}.tif`, 'UNKNOWN')] },
  'ndvi-python': { from: 'olinda', title: 'Normalized difference, in Python', files: [of(`ndvi_${scene}_2.tif`, 'UNKNOWN')] },
  'spectral-index': { from: 'olinda', title: 'Spectral index', files: [of(`index_${scene}.tif`, 'UNKNOWN')] },
  'band-math': { from: 'olinda', parameters: { expression: 'nir - red' }, title: 'Band math', files: [of(`band-math_${scene}.tif`, 'UNKNOWN')] },
  'cloud-mask': { from: 'olinda', parameters: { band: 'nir', quality: 'blue', values: '0' }, title: 'Cloud mask', files: [of(`masked_${scene}.tif`, 'MULTISPECTRAL'), of(`mask_${scene}.tif`, 'UNKNOWN')] },
  harmonize: { from: 'olinda', title: 'Harmonize bands', files: [of(`harmonized_${scene}.tif`, 'MULTISPECTRAL')] },
  cog: { from: 'olinda', title: 'Cloud Optimized GeoTIFF', files: [of(`cog_${scene}.tif`, 'MULTISPECTRAL')] },
  reproject: { from: 'olinda', parameters: { crs: 'EPSG:4326' }, title: 'Reproject and resample', files: [of(`reprojected_${scene}.tif`, 'MULTISPECTRAL')] },
  mosaic: { from: 'olinda', title: 'Mosaic', files: [of(`mosaic_${scene}.tif`, 'MULTISPECTRAL')] },
  clip: { from: 'olinda', parameters: { area: triangle }, title: 'Clip to an area', files: [of(`clipped_${scene}.tif`, 'MULTISPECTRAL')], isPart: true },
  scale: { from: 'olinda', parameters: { factor: 2 }, title: 'Scale and offset', files: [of(`scaled_${scene}.tif`, 'MULTISPECTRAL')] },
  polygonize: { from: 'olinda', parameters: { band: 'nir', sieve: 200 }, title: 'Polygons of classes', files: [of(`areas_${scene}.gpkg`, 'POLYGON')] },
  hillshade: { from: 'jacksboro', title: 'Hillshade', files: [of(`hillshade_${dem}.tif`, 'UNKNOWN')] },
  slope: { from: 'jacksboro', title: 'Slope', files: [of(`slope_${dem}.tif`, 'UNKNOWN', 'degrees')] },
  aspect: { from: 'jacksboro', title: 'Aspect', files: [of(`aspect_${dem}.tif`, 'UNKNOWN', 'degrees')] },
  'terrain-index': { from: 'jacksboro', title: 'Terrain index', files: [of(`terrain-index_${dem}.tif`, 'UNKNOWN')] },
  'color-relief': { from: 'jacksboro', title: 'Colour relief', files: [of(`color-relief_${dem}.tif`, 'UNKNOWN')] },
  contours: { from: 'jacksboro', parameters: { interval: 100 }, title: 'Contours', files: [of(`contours_${dem}.gpkg`, 'LINESTRING')] },
}; // oxfmt-ignore

let sandbox: TestSandbox;
let session: BrowserSession;
let userId: string;
let collectionId: string;
const runs = new Map<string, Promise<RunView>>();

async function completed(request: object): Promise<RunView> {
  const { id } = await session.start(request);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  return session.waitFor(id, 'COMPLETED');
}

/** Waits until the platform has read the file. */
async function itemOf(fileId: string | null | undefined): Promise<StacItem> {
  const path = `/public/stac/collections/${collectionId}/items/${String(fileId)}`;
  await expect
    .poll(async () => (await sandbox.request('GET', path, { headers: key })).status, { timeout: 60_000 })
    .toBe(200);
  return (await sandbox.request('GET', path, { headers: key })).body as unknown as StacItem;
}

async function openedCopy(fileId: string, name: string): Promise<gdal.Dataset> {
  const path = join(await makeFolder(), name);
  await writeFile(path, await downloaded(sandbox, fileId));
  return gdal.open(path);
}

const near = (box: readonly number[], expected: readonly number[], tolerance = 0.002) =>
  expected.forEach((edge, i) => expect(Math.abs((box[i] ?? NaN) - edge)).toBeLessThan(tolerance));

beforeAll(async () => {
  sandbox = await startSandbox({ seed: 'demo', env: { SANDBOX_STAC_STRICT: 'false' } });
  const app = await startApp(sandbox.url, { definition: allSteps, env: { RUNS_PER_USER: '60' } });
  const launched = await launchApp(sandbox, app);
  session = launched.session;
  ({ userId } = (await sandbox.control('GET', `launches/${launched.launchId}`)) as unknown as { userId: string });
  collectionId = `uploads-${userId}`;
  for (const [stepId, { from, parameters = {} }] of Object.entries(steps)) {
    const items = [from === 'olinda' ? olinda : jacksboro];
    const run = completed({ stepId, parameters, input: { type: 'platform', items } });
    run.catch(() => {});
    runs.set(stepId, run);
  }
});

test('every step of the kit is here', () => {
  const here = [...Object.keys(steps), 'change', 'pan-sharpen', 'clip-to-features', 'zonal-statistics'];
  expect(allSteps.steps.map(({ id }) => id).toSorted()).toEqual(here.toSorted());
});

describe.each(Object.entries(steps))('%s', (stepId, { from, title, files, isPart }) => {
  test('the item, the file and the STAC item say what the input says', async () => {
    const run = await runs.get(stepId)!;
    const source = from === 'olinda' ? olinda : jacksboro;
    expect(run.files.map(({ fileName }) => fileName)).toEqual(files.map(({ name }) => name));
    for (const [i, { name, sourceType, unit }] of files.entries()) {
      const { fileId, output } = run.files[i]!;
      const item = await itemOf(fileId);
      expect(item.properties).toMatchObject({
        datetime: times[from],
        name,
        source_type: sourceType,
        layerProperties: { title, step: stepId, sourceItems: [source], ...(unit && { unit }) },
      });
      if (!isPart && sourceType !== 'LINESTRING') near(item.bbox, places[from], 0.01);
      expect(item.links.filter(({ rel }) => rel === 'derived_from').map(({ href }) => new URL(href).pathname)).toEqual([
        `/public/stac/collections/${source.collectionId}/items/${source.itemId}`,
      ]);
      const data = await fetch(item.assets.data.href);
      const saved = data.headers.get('content-disposition')?.replaceAll('"', '');
      expect(saved).toBe(`attachment; filename=${name.replace(/\.[^.]+$/, '.zip')}`);
      await data.body?.cancel();
      const file = await openedCopy(fileId!, name);
      expect(file.getMetadata()).toMatchObject({
        ACQUISITIONDATETIME: times[from],
        TIFFTAG_DATETIME: times[from].slice(0, 19).replaceAll('-', ':').replace('T', ' '),
        TIFFTAG_IMAGEDESCRIPTION: title,
        TIFFTAG_SOFTWARE: expect.stringMatching(/marketplace-app-kit \d.*GDAL 3/) as string,
        SOURCE_ITEMS: `${source.collectionId}/${source.itemId}`,
      });
      if (unit) expect(file.bands.get(1).unitType).toBe(unit);
      file.close();
      const stac = (await (await session.get(`api/runs/${run.id}/items/${output}`)).json()) as StacItem;
      expect(stac.properties).toMatchObject({ datetime: times[from], source_type: sourceType });
      near(stac.bbox, item.bbox, 0.001);
      expect(stac.assets['data']).toMatchObject({
        href: `./${name}`,
        'file:checksum': `1220${run.files[i]!.sha256}`,
        'file:size': run.files[i]!.sizeBytes,
      });
      expect(stac.links).toContainEqual(
        expect.objectContaining({
          rel: 'derived_from',
          href: `${sandbox.url}/public/stac/collections/${source.collectionId}/items/${source.itemId}`,
        }),
      );
    }
  });
});

const published = unless(
  hasExtensions('projection', 'raster', 'processing', 'file'),
  'the schemas of four STAC extensions are not here',
  'set STAC_EXTENSIONS to a folder of them (projection/v1.1.0/schema.json, ...)',
);
test('the STAC item of each output is valid, with its extensions', needing(published), async () => {
  for (const running of runs.values()) {
    const run = await running;
    for (const { output } of run.files) {
      const item = await (await session.get(`api/runs/${run.id}/items/${output}`)).json();
      expect(await faultsOf(item), output).toEqual([]);
    }
  }
});

test('a mosaic of two dates has the later one and the interval', async () => {
  const run = await completed({ stepId: 'mosaic', input: { type: 'platform', items: coast } });
  const item = await itemOf(run.file?.fileId);
  expect(run.file?.fileName).toBe('mosaic_coastal-optical-2_2024-03-17.tif');
  expect(item.properties).toMatchObject({
    datetime: expect.stringMatching(/^2024-03-17T/) as string,
    layerProperties: {
      start_datetime: expect.stringMatching(/^2024-03-01T/) as string,
      end_datetime: expect.stringMatching(/^2024-03-17T/) as string,
    },
  });
});

test('a change of two dates has the later one', async () => {
  const [before, after] = coast.map((one) => ({ type: 'platform', items: [one] }));
  const run = await completed({ stepId: 'change', input: { type: 'named', inputs: { before, after } } });
  expect((await itemOf(run.file?.fileId)).properties.datetime).toMatch(/^2024-03-17T/);
});

test('zones and a table lie where the zones lie; clipped pixels keep the kind of the raster', async () => {
  const zones = await processed(sandbox, Buffer.from(collection(triangle)), 'zones.geojson', 'POLYGON');
  expect(zones.status).toBe('COMPLETED');
  const features = { type: 'platform', items: [{ collectionId, itemId: zones.fileId }] };
  const raster = { type: 'platform', items: [olinda] };
  const clip = await completed({ stepId: 'clip-to-features', input: { type: 'named', inputs: { raster, features } } });
  const clipped = await itemOf(clip.file?.fileId);
  expect(clipped.properties).toMatchObject({ source_type: 'MULTISPECTRAL' });
  near(clipped.bbox, [-34.9, -8.02, -34.85, -7.97]);
  const counted = await completed({
    stepId: 'zonal-statistics',
    parameters: { label: 'name' },
    input: { type: 'named', inputs: { values: raster, zones: features } },
  });
  expect(counted.files.map(({ output }) => output)).toEqual(['zones.geojson', 'statistics.csv']);
  for (const { fileId } of counted.files) near((await itemOf(fileId)).bbox, [-34.9, -8.02, -34.85, -7.97]);
});

test('a second result of one step and item on a day gets a number in its name', async () => {
  await runs.get('cog');
  const again = await completed({ stepId: 'cog', input: { type: 'platform', items: [olinda] } });
  expect(again.file?.fileName).toBe(`cog_${scene}_2.tif`);
});

test('PROV says what was used, made, and by which software', async () => {
  const run = await runs.get('ndvi')!;
  const prov = (await (await session.get(`api/runs/${run.id}/prov`)).json()) as Record<string, Record<string, object>>;
  expect(Object.keys(prov).toSorted()).toEqual(
    ['activity', 'agent', 'entity', 'prefix', 'used', 'wasAssociatedWith', 'wasDerivedFrom', 'wasGeneratedBy'], // oxfmt-ignore
  );
  expect(prov['entity']!['run:output/ndvi.tif']).toMatchObject({ 'prov:label': `ndvi_${scene}.tif`, 'kit:sha256': run.file?.sha256 }); // oxfmt-ignore
  expect(prov['activity']!['run:activity']).toMatchObject({ 'kit:step': 'ndvi', 'kit:operation': run.operationId });
  const entities = Object.keys(prov['entity']!);
  for (const relation of [...Object.values(prov['used']!), ...Object.values(prov['wasGeneratedBy']!)] as {
    'prov:entity': string;
  }[])
    // oxfmt-ignore
    expect(entities).toContain(relation['prov:entity']);
});

test('pages link source and result both ways', async () => {
  const run = await runs.get('ndvi')!;
  const item = await itemOf(run.file?.fileId);
  const pageOf = async (path: string) => (await fetch(sandbox.url + path)).text();
  const result = await pageOf(`/catalog/${collectionId}/${item.id}`);
  expect(result.replace(/<[^>]+>/g, '')).toContain(
    'From Olinda, Landsat 7 by Normalized difference (NDVI) 2.1.0, approved by ',
  );
  expect(result).toContain('href="/catalog/olinda-coast/olinda-landsat7"');
  expect(await pageOf('/catalog/olinda-coast/olinda-landsat7')).toContain(`href="/catalog/${collectionId}/${item.id}"`);
  const page = await (await session.get(`runs/${run.id}`)).text();
  expect(page).toContain(`${sandbox.url}/catalog/olinda-coast/olinda-landsat7`);
  for (const [, href] of page.matchAll(/href="([^"]+\/runs\/[^"]+\/(?:prov|items\/[^"]+))"/g))
    expect((await session.get(href!)).headers.get('content-disposition'), href).toContain('attachment');
});
