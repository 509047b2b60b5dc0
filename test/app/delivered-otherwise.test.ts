// @module-tag all
/** Facts of results where a step, a profile or the place of an input is out of the ordinary. */
import gdal from 'gdal-async';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import yauzl from 'yauzl';
import { completionFields, wireProfile, type StacItem } from '../../src/contract/index.ts';
import allSteps from '../support/all-steps.ts';
import datedSteps from '../support/dated-steps.ts';
import { launchApp, startApp, type StartAppOptions } from '../support/app.ts';
import { downloaded, key, processed } from '../support/files.ts';
import { makeFolder } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

const olinda = { type: 'platform', items: [{ collectionId: 'olinda-coast', itemId: 'olinda-landsat7' }] };
const jacksboro = { type: 'platform', items: [{ collectionId: 'jacksboro-fault', itemId: 'jacksboro-dem' }] };
const coast = {
  type: 'platform',
  items: ['coastal-optical-001', 'coastal-optical-005'].map((itemId) => ({ collectionId: 'coastal-optical', itemId })),
};

async function start({ profile, ...options }: StartAppOptions = {}) {
  const sandbox = await startSandbox({ seed: 'demo', ...(profile && { profile }) });
  const app = await startApp(sandbox.url, { definition: allSteps, ...(profile && { profile }), ...options });
  const { session, launchId } = await launchApp(sandbox, app);
  const { userId } = (await sandbox.control('GET', `launches/${launchId}`)) as unknown as { userId: string };
  const completed = async (request: object) => {
    const { id } = await session.start(request);
    const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    return session.waitFor(id, 'COMPLETED');
  };
  const itemOf = async (fileId: string | null | undefined): Promise<StacItem> => {
    const path = `/public/stac/collections/uploads-${userId}/items/${String(fileId)}`;
    await expect
      .poll(async () => (await sandbox.request('GET', path, { headers: key })).status, { timeout: 60_000 })
      .toBe(200);
    return (await sandbox.request('GET', path, { headers: key })).body as unknown as StacItem;
  };
  return { sandbox, session, launchId, completed, itemOf, userId };
}

test('an own step may say that its result is of the earliest input, or of no time, and of another kind', async () => {
  const { completed, itemOf } = await start({ definition: datedSteps });
  const mosaic = await itemOf((await completed({ stepId: 'mosaic', input: coast })).file?.fileId);
  expect(mosaic.properties).toMatchObject({ datetime: expect.stringMatching(/^2024-03-01/) as string, source_type: 'THERMAL' }); // oxfmt-ignore
  const undated = await completed({ stepId: 'slope', input: jacksboro });
  expect(undated.file?.fileName).toBe('slope_jacksboro-dem.tif');
  expect(Date.now() - Date.parse((await itemOf(undated.file?.fileId)).properties.datetime)).toBeLessThan(600_000);
});

test('a scene across 180 degrees: the result lies across them too, and does not go round the Earth', async () => {
  const { sandbox, session, completed, itemOf, userId } = await start();
  const path = join(await makeFolder(), 'fiji.tif');
  // UTM zone 60 south ends at 180 degrees, some 833 km east of its false origin: this scene goes on for 20 km beyond.
  const scene = gdal.open(path, 'w', 'GTiff', 100, 100, 1, 'UInt16');
  scene.srs = gdal.SpatialReference.fromEPSG(32_760);
  scene.geoTransform = [800_000, 400, 0, 8_120_000, 0, -400];
  scene.bands.get(1).fill(7);
  scene.close();
  const { fileId, status } = await processed(sandbox, await readFile(path), 'fiji.tif', 'PANCHROMATIC');
  expect(status).toBe('COMPLETED');
  const { bbox } = await itemOf(fileId);
  const [west = 0, , east = 0] = bbox;
  expect([west > 179, east < -179]).toEqual([true, true]);
  const items = [{ collectionId: `uploads-${userId}`, itemId: fileId }];
  const run = await completed({ stepId: 'cog', input: { type: 'platform', items } });
  const item = await itemOf(run.file?.fileId);
  expect(item).toMatchObject({ bbox, properties: { source_type: 'PANCHROMATIC' } });
  const own = (await (await session.get(`api/runs/${run.id}/items/cog.tif`)).json()) as StacItem;
  expect(own).toMatchObject({ bbox, geometry: { type: 'MultiPolygon' } });
});

test('several outputs in one zip: each with its STAC item, a table with its description', async () => {
  const { sandbox, completed, itemOf, userId } = await start({ profile: wireProfile({ name: 'zip', severalOutputs: 'zip' }) }); // oxfmt-ignore
  const geometry = { type: 'Polygon', coordinates: [[[-34.9, -8.02], [-34.85, -8.02], [-34.87, -7.97], [-34.9, -8.02]]] }; // oxfmt-ignore
  const zones = JSON.stringify({
    type: 'FeatureCollection',
    features: [{ type: 'Feature', properties: {}, geometry }],
  });
  const { fileId } = await processed(sandbox, Buffer.from(zones), 'zones.geojson', 'POLYGON');
  await itemOf(fileId);
  const features = { type: 'platform', items: [{ collectionId: `uploads-${userId}`, itemId: fileId }] };
  const run = await completed({ stepId: 'zonal-statistics', input: { type: 'named', inputs: { values: olinda, zones: features } } }); // oxfmt-ignore
  expect(run.files.map(({ fileName }) => fileName)).toEqual([expect.stringMatching(/^zonal-statistics_.*\.zip$/)]);
  const texts = new Map<string, string>();
  const zip = await yauzl.fromBufferPromise(await downloaded(sandbox, run.file!.fileId!));
  for await (const entry of zip.eachEntry()) {
    const parts: Buffer[] = [];
    for await (const part of await zip.openReadStreamPromise(entry)) parts.push(part as Buffer);
    texts.set(entry.fileName, Buffer.concat(parts).toString());
  }
  expect([...texts.keys()].toSorted()).toEqual([
    ...['provenance.json', 'statistics.csv', 'statistics.csv-metadata.json', 'statistics.csv.stac.json'],
    ...['zones.geojson', 'zones.geojson.stac.json'],
  ]);
  const columns = texts.get('statistics.csv')!.split('\n')[0]!.trim().split(',');
  const described = JSON.parse(texts.get('statistics.csv-metadata.json')!) as {
    url: string;
    tableSchema: { columns: { name: string }[] };
  };
  expect([described.url, described.tableSchema.columns.map(({ name }) => name)]).toEqual(['statistics.csv', columns]);
  const item = JSON.parse(texts.get('zones.geojson.stac.json')!) as StacItem;
  expect(item.links.map(({ href }) => href)).toContain('/public/stac/collections/olinda-coast/items/olinda-landsat7');
  // The table has no location, so its item has the location of the zones.
  const table = JSON.parse(texts.get('statistics.csv.stac.json')!) as StacItem;
  for (const [i, degrees] of [-34.9, -8.02, -34.85, -7.97].entries()) expect(table.bbox[i]).toBeCloseTo(degrees, 5);
});

test.each(completionFields)(
  'a platform that refuses %s, and a profile that says so: nothing is refused',
  async (field) => {
    const { sandbox, launchId, completed, itemOf } = await start({
      profile: wireProfile({ name: 'strict', refusedFields: [field] }),
    });
    const run = await completed({ stepId: 'ndvi', input: olinda });
    const { calls } = (await sandbox.control('GET', `launches/${launchId}/trace`)) as { calls: { endpoint: string; status: number }[] }; // oxfmt-ignore
    expect(calls.filter(({ endpoint }) => endpoint === 'upload.complete').map(({ status }) => status)).toEqual([200]);
    const { properties } = await itemOf(run.file?.fileId);
    expect('layerProperties' in properties).toBe(field !== 'layerProperties');
    // Without the field, the platform reads the time from the file.
    expect(properties.datetime).toBe('2002-07-01T12:30:00.000Z');
  },
);

test.each(completionFields)(
  'a platform that refuses %s, unknown to the profile: the completion is sent once more',
  async (field) => {
    const strict = wireProfile({ name: 'strict', refusedFields: [field] });
    const sandbox = await startSandbox({ seed: 'demo', profile: strict });
    const app = await startApp(sandbox.url, { definition: allSteps });
    const { session, launchId } = await launchApp(sandbox, app);
    const { id } = await session.start({ stepId: 'ndvi', input: olinda });
    const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    await session.waitFor(id, 'COMPLETED');
    const { calls } = (await sandbox.control('GET', `launches/${launchId}/trace`)) as { calls: { endpoint: string; status: number }[] }; // oxfmt-ignore
    const statuses = calls.filter(({ endpoint }) => endpoint === 'upload.complete').map(({ status }) => status);
    // An NDVI file contains its own location, so the app sends no geometry.
    expect(statuses).toEqual(field === 'geometry' ? [200] : [400, 200]);
  },
);
