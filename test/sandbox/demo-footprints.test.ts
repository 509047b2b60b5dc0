import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInChild } from '../../src/child/index.ts';
import { demoPlaces } from '../../src/sandbox/stac/seed.ts';
import type { Footprint } from '../../src/raster/footprint.ts';
import { testConfinement } from '../support/confinement.ts';
import { projectRoot, testFolder } from '../support/folders.ts';

/** About ten metres: releases of PROJ may round a metre differently. */
const toleranceDegrees = 1e-4;

test('the footprints of the demo are where GDAL puts its scenes', async () => {
  const places = demoPlaces();
  const made = await runInChild<(Footprint | null)[]>({
    module: new URL('./footprints-job.ts', import.meta.url),
    input: [...places.values()],
    workFolder: join(await testFolder(), 'work'),
    confinement: await testConfinement(),
  });
  const path = join(projectRoot, 'src/sandbox/scenes/footprints.json');
  // UPDATE_FOOTPRINTS=yes npx vitest run test/sandbox/demo-footprints.test.ts writes them after a change of the scenes.
  if (process.env['UPDATE_FOOTPRINTS'] === 'yes') {
    const lines = [...places.keys()].map((id, i) => `${JSON.stringify(id)}: ${JSON.stringify(made[i])}`);
    await writeFile(path, `{\n${lines.join(',\n')}\n}\n`);
  }
  const stored = JSON.parse(await readFile(path, 'utf8')) as Record<string, Footprint>;
  expect(Object.keys(stored)).toEqual([...places.keys()]);
  for (const [i, [id, footprint]] of Object.entries(stored).entries()) {
    expect(footprint.type, id).toBe('Polygon');
    const differences = footprint.coordinates
      .flat(2)
      .map((value, k) => Number(value) - Number(made[i]?.coordinates.flat(2)[k]));
    expect(Math.max(...differences.map(Math.abs)), id).toBeLessThan(toleranceDegrees);
  }
});
