/** What numbers mean: no result is lost as no data, and what is compared or merged means the same. */
import { expect, test } from 'vitest';
import { run, type Made } from '../support/made-rasters.ts';

const pixels = (length: number, of: (i: number) => number | null) => Array.from({ length }, (_, i) => of(i));

test('a change of -9999 is a change', async () => {
  const of = (value: number): Made => ({ bands: [(x) => (x === 0 ? 0 : value)], nodata: 0 });
  const { bands } = (await run('band-math', of(9_999), { expression: '0 - "1"' })).raster();
  expect(bands[0]).toEqual(pixels(200, (i) => (i % 20 === 0 ? null : -9_999)));
});

test.each([
  ['Byte', 254.5, 255],
  ['Byte', 255.4, 255],
  ['Byte', 255.5, null],
  ['Byte', -0.5, 0],
  ['UInt16', 65_535, 65_535],
  ['Int16', -32_768, -32_768],
  ['Int32', -2_147_483_648, -2_147_483_648],
] as const)('band math in %s: %d comes out as %d', async (type, value, wanted) => {
  const made: Made = { type: 'Float64', bands: [(x) => (x === 0 ? NaN : x === 1 ? 1 : value)] };
  const { bands, metadata } = (await run('band-math', made, { expression: '"1"', type })).raster();
  expect(bands[0]).toEqual(pixels(200, (i) => (i % 20 === 0 ? null : i % 20 === 1 ? 1 : wanted)));
  expect(Number(metadata['STATISTICS_MINIMUM'])).toBe(Math.min(1, wanted ?? 1));
  expect(Number(metadata['STATISTICS_MAXIMUM'])).toBe(Math.max(1, wanted ?? 1));
});
