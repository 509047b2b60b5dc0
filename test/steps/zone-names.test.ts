/** Names of zones come out as they are: dates, times, 64-bit identifiers and text that is JSON. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import allSteps from '../support/all-steps.ts';
import { make } from '../support/made-rasters.ts';
import { startStepHost } from '../support/step-host.ts';

/** Statistics of two zones side by side, whose names are these texts of JSON. Returns the first column of the table. */
async function namesInTable(...names: readonly string[]): Promise<string[]> {
  const started = await startStepHost({ definition: allSteps });
  make(join(started.inputDir, 'a.tif'), { epsg: 4326, transform: [0, 1, 0, 10, 0, -1], bands: [() => 1] });
  const features = names.map((name, i) => {
    const west = 2 + 8 * i;
    const ring = `[[${west},2],[${west + 4},2],[${west + 4},6],[${west},6],[${west},2]]`;
    return `{"type":"Feature","properties":{"name":${name}},"geometry":{"type":"Polygon","coordinates":[${ring}]}}`;
  });
  writeFileSync(join(started.inputDir, 'z.geojson'), `{"type":"FeatureCollection","features":[${features.join(',')}]}`);
  const input = {
    type: 'named',
    inputs: { values: { type: 'local', path: 'a.tif' }, zones: { type: 'local', path: 'z.geojson' } },
  } as const;
  const { parameters } = await started.host.check('zonal-statistics', { label: 'name' }, input);
  const { outputs } = await started.run('zonal-statistics', input, parameters);
  const table = readFileSync(outputs.find(({ path }) => path.endsWith('.csv'))!.path, 'utf8');
  const [, ...rows] = table.trim().split(/\r?\n/);
  return rows.map((row) => /^("(?:[^"]|"")*"|[^,]*),/.exec(row)![1]!.replace(/^"|"$/g, '').replaceAll('""', '"'));
}

test.each([
  ['dates', ['"2024-01-01"', '"2024-02-01"'], ['2024-01-01', '2024-02-01']],
  ['times', ['"10:30:00"', '"11:30:00"'], ['10:30:00', '11:30:00']],
  ['64-bit integers', ['617700169958293503', '617700169958293504'], ['617700169958293503', '617700169958293504']],
  ['text that is JSON', ['"[1]"', '"{}"'], ['[1]', '{}']],
])('%s', async (_what, names, expected) => {
  expect(await namesInTable(...names)).toEqual(expected);
});
