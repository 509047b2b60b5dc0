/** Metadata files of Landsat, Collection 2: the scale of each band is the product's own. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SceneMetadata } from '../../src/sandbox/stac/import/scene-metadata.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { inKeptChild } from '../support/kept-children.ts';

async function scalesOf(text: string): Promise<SceneMetadata['scales'] | undefined> {
  const folder = await testFolder();
  const path = join(folder, 'MTL.txt');
  await writeFile(path, text);
  const read = await inKeptChild<SceneMetadata | null>({
    module: new URL('../../src/sandbox/stac/import/scene-metadata-job.ts', import.meta.url),
    input: null,
    files: [{ path, name: 'metadata' }],
    workFolder: join(folder, 'work'),
    confinement: await testConfinement(),
  });
  return read?.scales;
}

const level1 = `
  GROUP = LEVEL1_RADIOMETRIC_RESCALING
    RADIANCE_MULT_BAND_4 = 1.0002E-02
    RADIANCE_ADD_BAND_4 = -50.00983
    REFLECTANCE_MULT_BAND_4 = 2.0000E-05
    REFLECTANCE_ADD_BAND_4 = -0.100000
    REFLECTANCE_MULT_BAND_5 = 2.0000E-05
    REFLECTANCE_ADD_BAND_5 = -0.100000
  END_GROUP = LEVEL1_RADIOMETRIC_RESCALING`;
const level2 = `
  GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
    REFLECTANCE_MULT_BAND_4 = 2.75e-05
    REFLECTANCE_ADD_BAND_4 = -0.2
    REFLECTANCE_MULT_BAND_5 = 2.75e-05
    REFLECTANCE_ADD_BAND_5 = -0.2
  END_GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
  GROUP = LEVEL2_SURFACE_TEMPERATURE_PARAMETERS
    TEMPERATURE_MULT_BAND_ST_B10 = 0.00341802
    TEMPERATURE_ADD_BAND_ST_B10 = 149.0
  END_GROUP = LEVEL2_SURFACE_TEMPERATURE_PARAMETERS`;
const file = (groups: string) =>
  `GROUP = LANDSAT_METADATA_FILE\n  SPACECRAFT_ID = "LANDSAT_8"\n  SENSOR_ID = "OLI_TIRS"${groups}\nEND_GROUP = LANDSAT_METADATA_FILE\nEND\n`;

// USGS, Landsat 8-9 Collection 2 Level 2 Science Product Guide: reflectance 0.0000275 and -0.2, temperature 0.00341802 and 149 K.
test('a level 2 product has the scale of surface reflectance, although the file repeats that of level 1', async () => {
  const reflectance = { scale: 2.75e-5, offset: -0.2 };
  expect(await scalesOf(file(level2 + level1))).toEqual({
    B4: reflectance,
    B5: reflectance,
    B10: { scale: 0.00341802, offset: 149 },
  });
});

test('a level 1 product has the scale of reflectance at the top of the atmosphere', async () => {
  const reflectance = { scale: 2e-5, offset: -0.1 };
  expect(await scalesOf(file(level1))).toEqual({ B4: reflectance, B5: reflectance });
});
