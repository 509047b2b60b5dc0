/** Statistics that are counted while a band is written, against those of what GDAL has stored. */
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { accumulatorOf } from '../../src/raster/statistics.ts';

const odd = [-0.5, -1.5, -2.5, 0.5, 1.5, 2.5, 7, 7, -3.4999, 250.6, 70_000, -70_000, Infinity, -Infinity];

test.each([
  ['Byte', 7],
  ['Byte', -9_999],
  ['UInt16', null],
  ['Int16', -2],
] as const)('%s, nodata %s: values that the type cannot hold count as GDAL stores them', (dataType, noDataValue) => {
  const band = gdal.drivers.get('MEM').create('', odd.length, 1, 1, dataType).bands.get(1);
  band.pixels.write(0, 0, odd.length, 1, Float64Array.from(odd));
  const stored = [...band.pixels.read(0, 0, odd.length, 1, new Float64Array(odd.length))].filter(
    (value) => value !== noDataValue,
  );
  const mean = stored.reduce((sum, value) => sum + value, 0) / stored.length;
  const accumulator = accumulatorOf({ dataType, noDataValue }, 1);
  // NaN is a missing pixel for all types.
  accumulator.add([...odd, NaN], odd.length + 1);
  const { count, min, max, mean: counted, stdDev } = accumulator.values!;
  expect([count, min, max]).toEqual([stored.length, Math.min(...stored), Math.max(...stored)]);
  expect(counted).toBeCloseTo(mean, 9);
  expect(stdDev).toBeCloseTo(Math.sqrt(stored.reduce((sum, value) => sum + (value - mean) ** 2, 0) / stored.length), 6);
});

test('statistics of real numbers leave out nodata, NaN and infinite values', () => {
  const values = Float32Array.from({ length: 100_003 }, (_, i) => (i % 11 === 0 ? [-9_999, NaN, Infinity, -Infinity][i % 4]! : (i % 1_000) / 8)); // oxfmt-ignore
  const accumulator = accumulatorOf({ dataType: 'Float32', noDataValue: -9_999 }, 1);
  accumulator.add(values, 70_001);
  accumulator.add(values.subarray(70_001), 30_002);
  const finite = [...values].filter((one) => Number.isFinite(one) && one !== -9_999);
  const mean = finite.reduce((sum, one) => sum + one, 0) / finite.length;
  const { count, min, max, mean: found, stdDev } = accumulator.values!;
  expect([count, min, max]).toEqual([finite.length, Math.min(...finite), Math.max(...finite)]);
  expect(found).toBeCloseTo(mean, 9);
  expect(stdDev).toBeCloseTo(Math.sqrt(finite.reduce((sum, one) => sum + (one - mean) ** 2, 0) / finite.length), 6);
});
