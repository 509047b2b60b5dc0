/** Names of zones come out as they are: dates, times, 64-bit identifiers and text that is JSON. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import allSteps from '../support/all-steps.ts';
import { make } from '../support/made-rasters.ts';
import { startStepHost } from '../support/step-host.ts';

const namesInTable = (...names: readonly string[]) => {
  const features = names.map((name, i) => {
    const west = 2 + 8 * i;
    const ring = `[[${west},2],[${west + 4},2],[${west + 4},6],[${west},6],[${west},2]]`;
    return `{"type":"Feature","properties":{"name":${name}},"geometry":{"type":"Polygon","coordinates":[${ring}]}}`;
  });
  return namesIn('z.geojson', Buffer.from(`{"type":"FeatureCollection","features":[${features.join(',')}]}`));
};

/** Statistics of the zones in this file. Returns the first column of the table. */
async function namesIn(fileName: string, zones: Buffer): Promise<string[]> {
  const started = await startStepHost({ definition: allSteps });
  make(join(started.inputDir, 'a.tif'), { epsg: 4326, transform: [0, 1, 0, 10, 0, -1], bands: [() => 1] });
  writeFileSync(join(started.inputDir, fileName), zones);
  const input = {
    type: 'named',
    inputs: { values: { type: 'local', path: 'a.tif' }, zones: { type: 'local', path: fileName } },
  } as const;
  const { parameters } = await started.host.check('zonal-statistics', { label: 'name', crs: 'EPSG:4326' }, input);
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

const square = '"POLYGON ((2 2,6 2,6 6,2 6,2 2))"';

test('names of a CSV must be UTF-8', async () => {
  const csv = `name,WKT\nSão Luís,${square}\n`;
  expect(await namesIn('z.csv', Buffer.from(csv))).toEqual(['São Luís']);
  expect(await namesIn('z.csv', Buffer.from(csv.replace('ã', '\ufffd')))).toEqual(['S\ufffdo Luís']);
  await expect(namesIn('z.csv', Buffer.from(csv, 'latin1'))).rejects.toThrow(
    'the name of feature 1 is not UTF-8; save the file in UTF-8',
  );
});

test('a CSV of one column is refused in words', async () => {
  await expect(namesIn('z.csv', Buffer.from(`WKT\n${square}\n`))).rejects.toThrow(
    'the file is no CSV of two columns or more, such as name,WKT',
  );
});
