/** The delivered item says of a result what its inputs say: when, what kind, from which items, by which step. */
import { expect, test } from 'vitest';
import { resultFacts } from '../../src/app/processing/result-facts.ts';
import type { OutputDescription } from '../../src/app/processing/output-description.ts';
import type { Provenance } from '../../src/app/processing/provenance.ts';
import { limits } from '../../src/contract/index.ts';
import type { AnyStep } from '../../src/steps/step.ts';
import allSteps from '../support/all-steps.ts';
import { launchApp, startApp } from '../support/app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { search } from '../support/stac.ts';

const landsat = { collectionId: 'olinda-coast', itemId: 'olinda-landsat7' };
const dem = { collectionId: 'jacksboro-fault', itemId: 'jacksboro-dem' };

interface Item {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

async function start() {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url);
  return { sandbox, session: (await launchApp(sandbox, app)).session };
}
type Session = Awaited<ReturnType<typeof start>>['session'];

/** Runs a step to its end, and finds the one item that a search by its source's date brings beside the source. */
async function delivered(
  sandbox: TestSandbox,
  session: Session,
  { source, date, ...run }: { source: typeof landsat; date: string; stepId: string; parameters?: object },
): Promise<Item | undefined> {
  const { id } = await session.start({ ...run, input: { type: 'platform', items: [source] } });
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const { provenance } = await session.waitFor(id, 'COMPLETED');
  const { digest } = provenance as Provenance;
  const isOfRun = ({ properties }: Item) =>
    (properties['layerProperties'] as { provenance?: string })?.provenance === digest;
  const { collections } = (await (await session.get('api/collections')).json()) as { collections: { id: string }[] };
  const byItsDate = {
    collections: collections.map((one) => one.id),
    datetime: `${date}T00:00:00Z/${date}T23:59:59Z`,
    limit: 100,
  };
  let features: readonly Item[] = [];
  await expect
    .poll(async () => {
      features = (await search(sandbox, byItsDate)).features;
      return features.some(isOfRun);
    })
    .toBe(true);
  expect(features.map(({ id: itemId }) => itemId)).toContain(source.itemId);
  return features.find(isOfRun);
}

test('an index, a conversion and a slope are dated, typed and traced as their inputs are', async () => {
  const { sandbox, session } = await start();
  const scene = { source: landsat, date: '2002-07-01' };
  const index = await delivered(sandbox, session, { ...scene, stepId: 'ndvi' });
  expect(index?.properties).toMatchObject({
    datetime: '2002-07-01T12:30:00.000Z',
    layerProperties: {
      title: 'Normalized difference (NDVI)',
      step: 'ndvi',
      sourceItems: [landsat],
      software: { GDAL: expect.any(String) as string },
    },
  });
  const converted = await delivered(sandbox, session, { ...scene, stepId: 'cog' });
  expect(converted?.properties).toMatchObject({
    datetime: '2002-07-01T12:30:00.000Z',
    source_type: 'MULTISPECTRAL',
    layerProperties: { step: 'cog', sourceItems: [landsat] },
  });
  const slope = await delivered(sandbox, session, {
    source: dem,
    date: '2000-02-16',
    stepId: 'slope',
    parameters: { unit: 'percent' },
  });
  expect(slope?.properties).toMatchObject({
    datetime: '2000-02-16T00:00:00.000Z',
    source_type: 'UNKNOWN',
    layerProperties: { step: 'slope', unit: 'percent', sourceItems: [dem] },
  });
});

test('a platform that refuses a field gets the completion once more without it, and the run is COMPLETED', async () => {
  const { sandbox, session } = await start();
  await sandbox.control('POST', 'faults', { endpoint: 'upload.complete', times: 1, effect: { status: 400 } });
  const { id } = await session.start({ stepId: 'cog', input: { type: 'platform', items: [landsat] } });
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  const run = await session.waitFor(id, 'COMPLETED');
  expect(run.file?.fileId).toBeTruthy();
});

const file = { fileName: 'a.tif', sizeBytes: 1, sha256: 'a'.repeat(64) };
const provenanceOf = (files: readonly object[], name = 'input') =>
  ({
    step: { id: 'x', version: '1.0.0', code: 'b'.repeat(64) },
    parameters: {},
    input: { type: 'platform', items: [landsat, dem] },
    inputs: [{ name, files: files.map((facts) => ({ ...file, ...facts })) }],
    operationId: 'op',
    software: {},
    digest: 'c'.repeat(64),
  }) as unknown as Provenance;
const stepOf = (id: string) => allSteps.steps.find((step) => step.id === id)!;

test('of several inputs the latest dates the result, with the interval in the properties', () => {
  const two = provenanceOf([
    { observedAt: '2003-01-01T00:00:00.000Z', sourceType: 'SAR' },
    { observedAt: '2002-01-01T00:00:00.000Z', sourceType: 'SAR' },
  ]);
  const facts = resultFacts(stepOf('mosaic'), { fileName: 'mosaic.tif' }, two);
  expect(facts).toMatchObject({
    sourceType: 'SAR',
    acquisitionDate: '2003-01-01T00:00:00.000Z',
    layerProperties: { start_datetime: '2002-01-01T00:00:00.000Z', end_datetime: '2003-01-01T00:00:00.000Z' },
  });
  const earliest = resultFacts({ ...stepOf('mosaic'), acquisition: 'earliest' }, { fileName: 'mosaic.tif' }, two);
  expect(earliest.acquisitionDate).toBe('2002-01-01T00:00:00.000Z');
  expect(resultFacts({ ...stepOf('mosaic'), acquisition: 'none' }, { fileName: 'mosaic.tif' }, two)).not.toHaveProperty(
    'acquisitionDate',
  );
});

test('inputs of two kinds, or without facts, claim nothing', () => {
  expect(
    resultFacts(
      stepOf('mosaic'),
      { fileName: 'mosaic.tif' },
      provenanceOf([{ sourceType: 'SAR' }, { sourceType: 'THERMAL' }]),
    ),
  ).toMatchObject({ sourceType: 'UNKNOWN' });
  const facts = resultFacts(stepOf('cog'), { fileName: 'cog.tif' }, provenanceOf([{}]));
  expect(facts.sourceType).toBe('UNKNOWN');
  expect(facts).not.toHaveProperty('acquisitionDate');
  expect(facts).not.toHaveProperty('geometry');
  expect(resultFacts(stepOf('cog'), { fileName: 'cog.tif' }, null)).toEqual({ sourceType: 'UNKNOWN' });
});

test('a list of items that a completion cannot hold is left to the file, and a broken style costs nothing', () => {
  const items = Array.from({ length: 200 }, (_, i) => ({ collectionId: 'c'.repeat(500), itemId: `${i}` }));
  const provenance: Provenance = { ...provenanceOf([{}]), input: { type: 'platform', items } };
  const { layerProperties } = resultFacts(stepOf('cog'), { fileName: 'cog.tif' }, provenance);
  expect(layerProperties).not.toHaveProperty('sourceItems');
  expect(JSON.stringify(layerProperties).length).toBeLessThan(limits.filePropertiesBytes);
  const preview = () => {
    throw new Error('a mistake in a style');
  };
  const broken = { ...stepOf('slope'), output: { ...stepOf('slope').output, preview } } as unknown as AnyStep;
  expect(resultFacts(broken, { fileName: 'slope.tif' }, provenanceOf([{}])).layerProperties).not.toHaveProperty('unit');
});

test('a table lies where its zones lie, and too many boxes are left out', () => {
  const inputs = [
    { name: 'values', files: [{ ...file, bbox: [0, 40, 20, 60] }] },
    { name: 'zones', files: [{ ...file, bbox: [10, 50, 11, 51] }] },
  ];
  const step = stepOf('zonal-statistics');
  const names = Object.keys(step.inputs!);
  expect(names).toEqual(['values', 'zones']);
  const of = (given: object) => resultFacts(step, { fileName: 'statistics.csv' }, { ...provenanceOf([]), ...given });
  const { coordinates } = JSON.parse(of({ inputs }).geometry!) as { coordinates: number[][][] };
  expect(coordinates[0]![0]).toEqual([10, 50]);
  const many = Array.from({ length: 201 }, (_, i) => ({ ...file, bbox: [i / 2, 0, i / 2 + 1, 1] }));
  expect(of({ inputs: [{ name: 'zones', files: many }] })).not.toHaveProperty('geometry');
});

test('a zip lies where the outputs in it lie', () => {
  const footprint = { type: 'Polygon', coordinates: [[[1, 1], [2, 1], [2, 2], [1, 1]]] } as const; // oxfmt-ignore
  const descriptions = [{ fileName: 'zones.geojson', footprint }] as unknown as readonly OutputDescription[];
  const { geometry } = resultFacts(
    stepOf('zonal-statistics'),
    { fileName: 'zonal-statistics.zip', descriptions },
    provenanceOf([{ bbox: [0, 40, 20, 60] }], 'zones'),
  );
  const [ring] = (JSON.parse(geometry!) as { coordinates: number[][][] }).coordinates;
  const [xs, ys] = [ring!.map(([x]) => x!), ring!.map(([, y]) => y!)];
  expect([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]).toEqual([1, 1, 2, 2]);
});

test('a table lies where its inputs lie, also across 180 degrees', () => {
  const of = (bbox: readonly number[]) =>
    resultFacts(stepOf('zonal-statistics'), { fileName: 'statistics.csv' }, provenanceOf([{ bbox }]));
  expect(JSON.parse(of([10, 50, 11, 51]).geometry!)).toMatchObject({ type: 'Polygon' });
  const across = JSON.parse(of([179, -17, -179, -16]).geometry!) as { type: string; coordinates: number[][][][] };
  expect(across.type).toBe('MultiPolygon');
  expect(across.coordinates.map(([ring]) => ring!.map(([x]) => x))).toEqual([
    [179, 180, 180, 179, 179],
    [-180, -179, -179, -180, -180],
  ]);
  expect(
    resultFacts(stepOf('zonal-statistics'), { fileName: 'zones.geojson' }, provenanceOf([{ bbox: [10, 50, 11, 51] }])),
  ).not.toHaveProperty('geometry');
});
