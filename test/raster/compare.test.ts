/** Two files say the same only if what a number means, what is masked and how it looks are the same too. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { firstDifference } from '../../src/commands/replay/compare.ts';
import { runInChild } from '../../src/child/index.ts';
import { compareJob } from '../../src/raster/index.ts';
import type { Bundle } from '../../src/sandbox/bundles/bundle.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { needing } from '../support/needs.ts';

const run = promisify(execFile);

test.each<[string, string[], RegExp | null]>([
  ['a copy', [], null],
  ['another scale', ['-a_scale', '0.5'], /"scale":0\.5/],
  ['another offset', ['-a_offset', '-1000'], /"offset":-1000/],
  ['a mask', ['-b', '1', '-mask', '1', '--config', 'GDAL_TIFF_INTERNAL_MASK', 'YES'], /row 0 of the mask: /],
])('%s', needing('gdal-programs'), async (_name, args, difference) => {
  const folder = await testFolder();
  await mkdir(folder, { recursive: true });
  const [a, b] = [join(folder, 'a.tif'), join(folder, 'b.tif')];
  await writeFile(a, geoTiff({ width: 8, height: 8, value: (x, y) => x * y }));
  await run('gdal_translate', ['-q', ...args, a, b]);
  const found = await runInChild<string | null>({
    module: compareJob,
    input: { kind: 'raster' },
    files: [a, b].map((path) => ({ path, name: basename(path) })),
    workFolder: join(folder, 'work'),
    confinement: await testConfinement(),
  });
  if (difference === null) expect(found).toBeNull();
  else expect(found).toMatch(difference);
});

const bundle = (contentSha256: string | null | undefined) =>
  ({
    effects: [],
    verdict: {},
    outputs: [
      {
        fileName: 'a.gpkg',
        sourceType: 'POLYGON',
        status: 'COMPLETED',
        pixelsSha256: null,
        ...(contentSha256 !== undefined && { contentSha256 }),
      },
    ],
  }) as unknown as Bundle;

test('features that differ are another output; an older bundle says nothing of them', () => {
  expect(firstDifference(bundle('a'), bundle('a'))).toBeNull();
  expect(firstDifference(bundle('a'), bundle('b'))).toMatch(/^output 1:/);
  expect(firstDifference(bundle(undefined), bundle('b'))).toBeNull();
});
