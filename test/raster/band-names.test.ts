import { expect, test } from 'vitest';
import { bandNames, bandOfFileName } from '../../src/raster/band-names.ts';

test.each([
  ['l8_B4.tif', 'B4'],
  ['LC80200392015216LGN00_B10.TIF', 'B10'],
  ['l8_BQA.tif', 'BQA'],
  ['T33UVP_20200101T101010_B8A.jp2', 'B8A'],
  ['T33UVP_20200101T101010_B04_10m.jp2', 'B04'],
  ['b5.tif', 'B5'],
  ['dem.tif', null],
  ['RGB4.tif', null],
  ['B4x.tif', null],
])('%s counts %s', (fileName, band) => expect(bandOfFileName(fileName)).toBe(band));

test('Landsat 8 and Sentinel-2 give the same numbers different names; the files tell which it is', () => {
  expect(bandNames(['l8_B4.tif', 'l8_B5.tif'])).toEqual([
    ['B4', 'red'],
    ['B5', 'nir', 'nir08'],
  ]);
  expect(bandNames(['S2_B04.jp2', 'S2_B08.jp2', 'S2_B8A.jp2', 'S2_B11.jp2'])).toEqual([
    ['B04', 'red'],
    ['B08', 'nir'],
    ['B8A', 'nir08'],
    ['B11', 'swir16'],
  ]);
  expect(bandNames(['x.tif'])).toEqual([[]]);
  expect(bandNames(['LE07_L1TP_x_B4.TIF', 'LE07_L1TP_x_B5.TIF'])).toEqual([
    ['B4', 'nir', 'nir08'],
    ['B5', 'swir16'],
  ]);
  expect(bandNames(['LT50010722_B3.tif'])).toEqual([['B3', 'red']]);
  expect(bandNames(['a_B3.tif', 'a_B4.tif'], 'landsat-4-7')).toEqual([
    ['B3', 'red'],
    ['B4', 'nir', 'nir08'],
  ]);
});

// The bands of each sensor as its agency numbers them (USGS, ESA, NASA's HLS user guide).
test.each([
  [
    ['LC08_B05.tif', 'LC08_B06.tif'],
    ['nir', 'swir16'],
  ],
  [
    ['clip_HLS.L30.T32UPU.B05.tif', 'clip_HLS.L30.T32UPU.B06.tif'],
    ['nir', 'swir16'],
  ],
  [
    ['clip_s2019_B4.tif', 'clip_s2019_B5.tif'],
    ['red', 'nir'],
  ],
  [
    ['clip_MOD09GA_b01.tif', 'clip_MOD09GA_b02.tif'],
    [undefined, undefined],
  ],
  [
    ['HLS.L30.T32UPU.2020001T000000.v2.0.B03.tif', 'HLS.L30.T32UPU.2020001T000000.v2.0.B11.tif'],
    ['green', 'lwir12'],
  ],
  [
    ['HLS.S30.T32UPU.2020001T000000.v2.0.B03.tif', 'HLS.S30.T32UPU.2020001T000000.v2.0.B11.tif'],
    ['green', 'swir16'],
  ],
  [
    ['clip_LT05_L2SP_SR_B3.tif', 'clip_LT05_L2SP_SR_B4.tif'],
    ['red', 'nir'],
  ],
  [
    ['landsat7_B3.tif', 'landsat7_B4.tif'],
    ['red', 'nir'],
  ],
  [
    ['landsat8_B3.tif', 'landsat8_B4.tif'],
    ['green', 'red'],
  ],
  [
    ['landsat8_B03.tif', 'landsat8_B05.tif'],
    ['green', 'nir'],
  ],
  [
    ['HLS.S30.T32UPU.2020001T000000.v2.0.B4.tif', 'HLS.S30.T32UPU.2020001T000000.v2.0.B8.tif'],
    ['red', 'nir'],
  ],
  [
    ['s2export_B4.tif', 's2export_B8.tif'],
    ['red', 'nir'],
  ],
  [
    ['T33UVP_20200101T101010_B10.jp2', 'T33UVP_20200101T101010_B11.jp2'],
    ['cirrus', 'swir16'],
  ],
  [
    ['EO1A0010722001_B04_L1T.TIF', 'EO1A0010722001_B05_L1T.TIF'],
    [undefined, undefined],
  ],
  [
    ['MOD09GA.A2020001_b01.tif', 'MOD09GA.A2020001_b02.tif'],
    [undefined, undefined],
  ],
])('%o', (fileNames, names) => {
  expect(bandNames(fileNames).map(([, common]) => common)).toEqual(names);
});

test.each([
  'HS_H08_20200101_0000_B03_FLDK.tif',
  'WV02_20200101_B5.tif',
  'RapidEye_20200101_B4.tif',
  'PSScene_20200101_B4.tif',
  'SPOT6_20200101_B4.tif',
  'clip-pleiades_B4.tif',
  'CBERS_4_PAN5M_B4.tif',
  'GF1_WFV1_B4.tif',
  'KOMPSAT3_B4.tif',
  'S3A_OL_1_EFR_B08.tif',
])('a sensor whose bands have no common names here: %s', (fileName) => {
  const [names] = bandNames([fileName]);
  expect(names).not.toHaveLength(0);
  expect(names!.every((name) => /^B\d+$/.test(name))).toBe(true);
});
