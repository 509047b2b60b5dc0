/** Metadata of a band: that of the item's band of the same name, and each band's own number for no data. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { BandReader } from '../../src/raster/band-reader.ts';
import { openScene } from '../../src/raster/scene.ts';
import { readItem } from '../../src/contract/stac/read-catalog.ts';
import { testFolder } from '../support/folders.ts';
import { make } from '../support/made-rasters.ts';

const itemBand = (name: string, factor: number) => ({ names: [name], scale: { factor, offset: 0 }, nodata: null });

async function factorsOf(colors: readonly string[], item: readonly ReturnType<typeof itemBand>[]) {
  const path = make(join(await testFolder(), 'scene.tif'), { bands: colors.map(() => () => 1) });
  const dataset = gdal.open(path, 'r+');
  dataset.bands.forEach((band, i) => {
    band.colorInterpretation = colors[i - 1] ?? '';
  });
  dataset.close();
  const scene = openScene([path], [{ observedAt: null, bands: item }]);
  try {
    return scene.bands.map((band) => new BandReader(band).scale.factor);
  } finally {
    scene.close();
  }
}

const item = [itemBand('red', 2), itemBand('green', 3), itemBand('blue', 4)];

test('a band of a STAC 1.1 item has the scale and the offset of the item', () => {
  const bands = [{ name: 'red', 'raster:scale': 0.0001, 'raster:offset': -0.1 }];
  expect(readItem({ id: 'i', properties: { bands } }).bands).toMatchObject([{ scale: 0.0001, offset: -0.1 }]);
});

test("the names count: an item's bands may stand in another order than the file's", async () => {
  expect(await factorsOf(['Blue', 'Green', 'Red'], item)).toEqual([4, 3, 2]);
});

test('without names the position counts, if item and file have as many bands', async () => {
  expect(await factorsOf(['Undefined', 'Undefined', 'Undefined'], item)).toEqual([2, 3, 4]);
  expect(await factorsOf(['Undefined', 'Undefined'], item)).toEqual([1, 1]);
});

test('a pixel whose bands all have the numbers of NODATA_VALUES is missing, in each band', async () => {
  const path = make(join(await testFolder(), 'rgb.tif'), {
    ...{ width: 3, height: 1, type: 'Byte' },
    bands: [(x) => [1, 1, 9][x]!, (x) => [2, 2, 2][x]!, (x) => [3, 7, 3][x]!],
  });
  const dataset = gdal.open(path, 'r+');
  dataset.setMetadata({ NODATA_VALUES: '1 2 3' });
  dataset.close();
  const scene = openScene([path]);
  try {
    const values = scene.bands.map((band) => {
      const out = new Float64Array(3);
      new BandReader(band).read([0, 0, 3, 1], out);
      return [...out];
    });
    expect(values).toEqual([
      [NaN, 1, 9],
      [NaN, 2, 2],
      [NaN, 7, 3],
    ]);
  } finally {
    scene.close();
  }
});
