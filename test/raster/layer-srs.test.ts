/** A layer's reference system never stands in for a raster's. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { srsOfLayers } from '../../src/raster/layer-srs.ts';
import { testFolder } from '../support/folders.ts';

test("after a layer's dataset is closed, a raster still has its own reference system", async () => {
  const folder = await testFolder();
  const area = join(folder, 'area.geojson');
  const geometry = { type: 'Point', coordinates: [15, 48] };
  await writeFile(
    area,
    JSON.stringify({ type: 'FeatureCollection', features: [{ type: 'Feature', properties: {}, geometry }] }),
  );
  const raster = gdal.drivers.get('GTiff').create(join(folder, 'a.tif'), 1, 1, 1, 'Byte');
  raster.srs = gdal.SpatialReference.fromEPSG(32633);
  const isWrong = () => !raster.srs?.isProjected();
  const wrongAfter = (times: number, read: (layer: gdal.Layer) => gdal.SpatialReference | null) => {
    let wrong = 0;
    for (let i = 0; i < times; i++) {
      const dataset = gdal.open(area);
      expect(read(dataset.layers.get(0))?.isGeographic()).toBe(true);
      dataset.close();
      wrong += Number(isWrong()) + Number(isWrong());
    }
    return wrong;
  };
  const safely = (layer: gdal.Layer) => srsOfLayers([layer])[0] ?? null;
  // Each collects garbage, in the heap of all tests of this process.
  expect(wrongAfter(50, safely)).toBe(0);
  // Without the function the test sees the fault.
  // oxlint-disable-next-line no-restricted-properties -- It shows the fault.
  expect(wrongAfter(300, (layer) => layer.srs)).toBeGreaterThan(0);
  // No object of these is left to the other tests of this process.
  wrongAfter(5, safely);
  raster.close();
});

test('a layer without a reference system has none', async () => {
  const path = join(await testFolder(), 'points.csv');
  await writeFile(path, 'name,value\na,1\n');
  const dataset = gdal.open(path);
  expect(srsOfLayers([dataset.layers.get(0)])).toEqual([null]);
  dataset.close();
});
