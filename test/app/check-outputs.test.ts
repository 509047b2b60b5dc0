/** A raster that a step left, held against its declaration. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkOutputs } from '../../src/app/processing/check-outputs.ts';
import { openScene } from '../../src/raster/scene.ts';
import { defineStep, z, type BandDeclaration } from '../../src/steps/index.ts';
import { testFolder } from '../support/folders.ts';
import { make, type Made } from '../support/made-rasters.ts';

const raster = (type: string, nodata?: number): Made => ({
  type,
  bands: [() => 1],
  ...(nodata !== undefined && { nodata }),
});
const stored = raster('UInt16', 0);
const withAlpha: Made = { bands: [() => 1, () => 255], hasAlpha: true };

/** Holds a raster against its declaration. Default input: `stored`. */
async function check(written: Made, bands: 'as-input' | BandDeclaration[], input = stored): Promise<void> {
  const folder = await testFolder();
  const step = defineStep({
    id: 'checked',
    version: '1.0.0',
    title: 'x',
    description: 'x',
    parameters: z.object({}),
    input: { description: 'x', synthetic: 'elevation' },
    output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands, preview: { ramp: 'gray' } },
    run: async () => {},
  });
  const scene = openScene([make(join(folder, 'in.tif'), input)]);
  try {
    checkOutputs(step, { output: make(join(folder, 'out.tif'), written) }, scene);
  } finally {
    scene.close();
  }
}

const declared = (dataType: string, nodata?: number): BandDeclaration[] => [{ description: 'x', dataType, nodata }];
type Case = [name: string, written: Made, bands: 'as-input' | BandDeclaration[], input?: Made];

const accepted: Case[] = [
  ['no nodata, as declared', raster('Float32'), declared('Float32')],
  ['the declared nodata', raster('Float32', -9999), declared('Float32', -9999)],
  ['NaN', raster('Float32', NaN), declared('Float32', NaN)],
  ['NaN in 64 bits', raster('Float64', NaN), declared('Float64', NaN)],
  ['the declared nodata, rounded to 32 bits', raster('Float32', Math.fround(-0.1)), declared('Float32', -0.1)],
  ['a nodata whose declaration is rounded', raster('Float32', -0.1), declared('Float32', Math.fround(-0.1))],
  ['the nodata of the input', raster('UInt16', 0), 'as-input'],
  ['a nodata if the input has none', raster('UInt16', 7), 'as-input', raster('UInt16')],
  ['alpha for the nodata', withAlpha, 'as-input', { ...withAlpha, nodata: 0 }],
  ['a mask if valid pixels have the nodata', { ...raster('UInt16'), bands: [() => 0], mask: () => 255 }, 'as-input'],
];
test.each(accepted)('accepted: %s', async (_, written, bands, input) => {
  await check(written, bands, input);
});

const refused: [...Required<Case>, message: RegExp][] = [
  ['another type', raster('Float64'), declared('Float32'), stored, /wrote band 1 as Float64, but declares Float32/],
  ['two bands for one', { bands: [() => 1, () => 1] }, declared('UInt16'), stored, /wrote 2 bands, but declares 1/],
  [
    'no nodata',
    raster('Float32'),
    declared('Float32', -9999),
    stored,
    /wrote nodata undefined in band 1, but declares -9999/,
  ],
  [
    'a nodata that is not declared',
    raster('Float32', 5),
    declared('Float32'),
    stored,
    /nodata 5 .* declares undefined/,
  ],
  ['another nodata', raster('Float32', -9998), declared('Float32', -9999), stored, /nodata -9998 .* declares -9999/],
  [
    'the neighbour in 32 bits',
    raster('Float32', -0.100_000_01),
    declared('Float32', -0.1),
    stored,
    /but declares -0\.1/,
  ],
  [
    '64 bits rounded to 32',
    raster('Float64', Math.fround(-0.1)),
    declared('Float64', -0.1),
    stored,
    /but declares -0\.1/,
  ],
  ['NaN for a number', raster('Float32', NaN), declared('Float32', -9999), stored, /nodata NaN .* declares -9999/],
  ['a number for NaN', raster('Float32', -9999), declared('Float32', NaN), stored, /nodata -9999 .* declares NaN/],
  [
    'another nodata, with alpha',
    { ...withAlpha, nodata: 7 },
    'as-input',
    { ...withAlpha, nodata: 0 },
    /nodata 7 .* declares 0/,
  ],
  ['another nodata than the input', raster('UInt16', 7), 'as-input', stored, /nodata 7 .* declares 0/],
  [
    'a mask, though no valid pixel has the nodata',
    { ...raster('UInt16'), mask: () => 255 },
    'as-input',
    stored,
    /nodata undefined/,
  ],
  [
    'NaN as a value',
    { ...raster('Float32', -9999), bands: [() => NaN] },
    declared('Float32', -9999),
    stored,
    /wrote NaN into band 1/,
  ],
];
test.each(refused)('refused: %s', async (_, written, bands, input, message) => {
  await expect(check(written, bands, input)).rejects.toMatchObject({
    code: 'step_broke_its_declaration',
    message: expect.stringMatching(message) as string,
  });
});
