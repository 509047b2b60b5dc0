/** The mask of an inference area contains all of its polygons. */
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { createAreaMask } from '../../src/sandbox/inference/area-mask.ts';
import { testFolder } from '../support/folders.ts';

test('two polygons: pixels in each, and none between them', async () => {
  const square = (west: number) => [[[west, 50], [west + 0.1, 50], [west + 0.1, 50.1], [west, 50.1], [west, 50]]]; // oxfmt-ignore
  const mask = createAreaMask(
    { type: 'MultiPolygon', coordinates: [square(10), square(10.5)] },
    {
      srs: gdal.SpatialReference.fromEPSG(4326),
      ...{ geoTransform: [10, 0.01, 0, 50.1, 0, -0.01], width: 100, height: 10, isPoint: false },
    },
    await testFolder(),
  );
  expect([0, 50, 25].map((x) => mask.read(x, 0, 10, 10) !== null)).toEqual([true, true, false]);
});
