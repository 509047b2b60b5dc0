/** Pixels that are missing in one band, in every way that a file can mark them: none comes out as a value. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import allSteps from '../support/all-steps.ts';
import { testFolder } from '../support/folders.ts';
import { make, read, run, valid, type Made } from '../support/made-rasters.ts';
import { startStepHost } from '../support/step-host.ts';

const ring = [
  [499_000, 4_999_000],
  [502_000, 4_999_000],
  [502_000, 5_001_000],
  [499_000, 5_001_000],
  [499_000, 4_999_000],
];
/** The whole raster, in longitude and latitude. */
const everywhere = JSON.stringify({
  type: 'Polygon',
  coordinates: [ring.map(([x, y]) => [15 + (x! - 500_000) / 78_850, 45.15 + (y! - 4_999_700) / 111_100])],
});

/** Adds a second raster to a TIFF as the masks of its bands. Both have one strip. */
function withMasks(path: string, masks: string): void {
  const [file, mask] = [readFileSync(path), readFileSync(masks)];
  const sizes: Readonly<Record<number, number>> = { 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 12: 8 };
  const at = mask.readUInt32LE(4);
  const entries = Array.from({ length: mask.readUInt16LE(at) }, (_, i) => {
    const entry = Buffer.from(mask.subarray(at + 2 + 12 * i, at + 14 + 12 * i));
    const isElsewhere = (sizes[entry.readUInt16LE(2)] ?? 8) * entry.readUInt32LE(4) > 4;
    // The mask comes after the file, so offsets of long values and of the strip (tag 273) grow by its length.
    if (isElsewhere || entry.readUInt16LE(0) === 273) entry.writeUInt32LE(entry.readUInt32LE(8) + file.length, 8);
    return entry;
  });
  const isMask = Buffer.alloc(12);
  for (const [offset, value] of [[0, 254], [2, 4]] as const) isMask.writeUInt16LE(value, offset); // oxfmt-ignore
  for (const [offset, value] of [[4, 1], [8, 4]] as const) isMask.writeUInt32LE(value, offset); // oxfmt-ignore
  const all = [isMask, ...entries];
  const directory = Buffer.concat([Buffer.from([all.length, 0]), ...all, Buffer.alloc(4)]);
  const first = file.readUInt32LE(4);
  file.writeUInt32LE(file.length + mask.length, first + 2 + 12 * file.readUInt16LE(first));
  writeFileSync(path, Buffer.concat([file, mask, directory]));
}

describe('a mask for each band', () => {
  const isMissing = [(x: number) => x < 5, (x: number) => x < 10];
  /** Two bands of 7, the first without 5 columns of 20, the second without 10. */
  async function runMasked(step: string, parameters: StepParameters = {}) {
    const started = await startStepHost({ definition: allSteps });
    const folder = started.inputDir;
    const path = make(join(folder, 'a.tif'), { type: 'Byte', bands: [() => 7, () => 7] });
    const masks = join(await testFolder(), 'masks.tif');
    make(masks, { type: 'Byte', epsg: null, transform: null, bands: isMissing.map((is) => (x) => (is(x) ? 0 : 255)) });
    withMasks(path, masks);
    const dataset = gdal.open(path);
    expect(dataset.bands.map((band) => band.getMaskFlags())).toEqual([0, 0]);
    dataset.close();
    const input = { type: 'local', path: 'a.tif' } as const;
    const { parameters: checked } = await started.host.check(step, parameters, input);
    return read((await started.run(step, input, checked)).path).bands;
  }
  const wanted = isMissing.map((is) => Array.from({ length: 200 }, (_, i) => (is(i % 20) ? null : 7)));

  test.each([
    ['cog', {}],
    ['clip', { area: everywhere }],
    ['mosaic', {}],
    ['mosaic', { overlap: 'mean' }],
    ['reproject', { crs: 'EPSG:32633' }],
    ['harmonize', {}],
  ])('%s %o', async (step, parameters) => {
    expect(await runMasked(step, parameters)).toEqual(wanted);
  });
});

describe('alpha and nodata values', () => {
  const made: Made = {
    type: 'Float32',
    nodata: -9999,
    bands: [(x) => (x === 3 ? -9999 : 10), (x) => (x === 6 ? -9999 : 20), (x) => (x === 9 ? 0 : 255)],
    hasAlpha: true,
  };
  test.each([
    ['mosaic', {}],
    ['mosaic', { overlap: 'max' }],
    ['reproject', { crs: 'EPSG:32633' }],
    ['reproject', { crs: 'EPSG:32633', resampling: 'bilinear' }],
    ['cog', {}],
  ])('%s %o leaves no 0 where one band has no data', async (step, parameters) => {
    const [first, second] = (await run(step, made, parameters)).raster().bands;
    expect(new Set(valid(first!))).toEqual(new Set([10]));
    expect(new Set(valid(second!))).toEqual(new Set([20]));
    expect([first![3], second![6]]).toEqual([null, null]);
  });
});

describe('alpha that is not the last band', () => {
  /** Red, alpha and near infrared. Hidden pixels hold 9999. */
  const made: Made = {
    type: 'UInt16',
    bands: [(x) => (x < 4 ? 9_999 : 100), (x) => (x < 4 ? 0 : 255), (x) => (x < 4 ? 9_999 : 400)],
    place: (dataset) => void (dataset.bands.get(2).colorInterpretation = 'Alpha'),
    scale: [0.001, 0],
  };
  async function bandsOf(step: string, parameters: StepParameters) {
    const { path } = await run(step, made, parameters);
    const dataset = gdal.open(path);
    const facts = dataset.bands.map(({ colorInterpretation, scale }) => [colorInterpretation === 'Alpha', scale]);
    const { x: width, y: height } = dataset.rasterSize;
    const [red, alpha, infrared] = dataset.bands.map((band) => [
      ...(band.pixels.read(0, 0, width, height, new Float64Array(width * height)) as Float64Array),
    ]);
    dataset.close();
    const seen = (values: number[]) => new Set(values.filter((_, i) => alpha![i]! > 0));
    return { facts, red: seen(red!), infrared: seen(infrared!), hidden: alpha!.filter((value) => value === 0).length };
  }

  test.each([
    ['reproject', { crs: 'EPSG:32633', resampling: 'cubic' }],
    ['reproject', { crs: 'EPSG:32633' }],
    ['mosaic', {}],
    ['mosaic', { overlap: 'mean' }],
  ])('%s %o: no hidden value shows, and bands keep their places and scales', async (step, parameters) => {
    const { facts, red, infrared, hidden } = await bandsOf(step, parameters);
    expect([red, infrared, hidden]).toEqual([new Set([100]), new Set([400]), 40]);
    expect(facts.map(([isAlpha]) => isAlpha)).toEqual([false, true, false]);
    expect([facts[0]![1], facts[2]![1]]).toEqual([0.001, 0.001]);
  });
});
