// @module-tag all
/** A step that runs a model of the app's own, tile by tile. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { AppDefinition } from '../../src/app/definition/app-definition.ts';
import { onnxModel } from '../../src/steps/index.ts';
import { batteryOf } from '../../src/testing/step-battery/index.ts';
import { readCases } from '../../src/testing/step-battery/cases.ts';
import { testConfinement } from '../support/confinement.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { putModel, thresholdGraph } from '../support/models.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';

const words = { description: 'A model of a test.' };
const cases = {
  exempt: {
    'its output and its estimate': 'the synthetic scene has no band of that name',
    'a scale and an offset': 'a model without ranges accepts stored numbers',
  },
  types: ['Byte', 'UInt16', 'Int16', 'Float32', 'Float64'],
  cases: [
    {
      name: 'above 100',
      inputs: { input: [{ name: 'a.tif', bands: [{ name: 'a', values: 'mod(x * 7 + y * 3, 200)' }] }] },
      expect: { output: { value: 'max(0, min(1, a - 100))' } },
    },
    {
      name: 'bands that are not there',
      inputs: { input: [{ name: 'a.tif', bands: [1, 2].map((i) => ({ name: `b${i}`, values: 'x' })) }] },
      refused: 'band_not_found',
    },
  ],
};

describe('a model as a step', () => {
  let folder: string;
  let definition: AppDefinition;

  beforeAll(async () => {
    folder = join(await testFolder(), 'app');
    await mkdir(folder, { recursive: true });
    const models = { threshold: {}, small: { tileSize: 16, overlap: 1 }, large: { tileSize: 128, overlap: 1 } };
    for (const [id, description] of Object.entries(models))
      await putModel(folder, id, { bands: ['a'], ...description }, thresholdGraph(id !== 'threshold'));
    const kit = pathToFileURL(join(projectRoot, 'src/steps/index.ts')).href;
    await writeFile(
      join(folder, 'app.mjs'),
      `import { onnxModel } from ${JSON.stringify(kit)};
       const of = (id) => onnxModel({ id, folder: new URL('./models/' + id + '/', import.meta.url), description: 'of a test' });
       export default { module: import.meta.url, id: 'x', name: 'x', description: 'x', steps: [of('threshold'), of('small'), of('large')] };`,
    );
    await writeFile(join(folder, 'cases.json'), JSON.stringify(cases));
    definition = ((await import(pathToFileURL(join(folder, 'app.mjs')).href)) as { default: AppDefinition }).default;
  });

  test('does all that every step must', { timeout: 900_000 }, async () => {
    const options = {
      definition,
      stepId: 'threshold',
      cases: readCases(pathToFileURL(join(folder, 'cases.json'))),
      confinement: testConfinement,
      largeSide: 2_048,
    };
    const failed: string[] = [];
    for (const { name, run } of batteryOf(options).filter(({ exempt }) => exempt === undefined))
      await run().catch((error: unknown) => failed.push(`${name}: ${(error as Error).message}`));
    expect(failed).toEqual([]);
  });

  test('with overlap, the size of a tile changes no pixel', async () => {
    const inputDir = await testFolder();
    await writeFile(
      join(inputDir, 'a.tif'),
      geoTiff({ width: 100, height: 70, value: (x, y) => (x * 37 + y * 91) % 211 }),
    );
    const { run } = await startStepHost({ definition, inputDir });
    const of = async (id: string) => {
      const { path } = await run(id, { type: 'local', path: 'a.tif' });
      return (await readGeoTiff(path)).samples;
    };
    const [small, large] = [await of('small'), await of('large')];
    expect(new Set(small)).toEqual(new Set([0, 1]));
    expect(small).toEqual(large);
  });

  test('a folder without a model, and a model that gives pixels no class, stop the start', async () => {
    await putModel(folder, 'boxes', { type: 'DETECTION' }, thresholdGraph());
    const at = (id: string) => pathToFileURL(join(folder, 'models', id, '/'));
    expect(() => onnxModel({ ...words, id: 'none', folder: at('none') })).toThrow(/model\.json/);
    expect(() => onnxModel({ ...words, id: 'boxes', folder: at('boxes') })).toThrow(/DETECTION|CLASSIFICATION/);
  });
});
