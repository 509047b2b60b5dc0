/** Places of rasters: pixels that are not the same, and footprints on the map. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { boxOf, footprintOf } from '../../src/raster/footprint.ts';
import { openScene, requireSameGrid } from '../../src/raster/scene.ts';
import { testFolder } from '../support/folders.ts';
import { make, type Made } from '../support/made-rasters.ts';

describe('rasters in degrees', () => {
  const degrees = 1e-4;
  async function sameGrid(columns: number): Promise<void> {
    const folder = await testFolder();
    const made = (west: number): Made => ({ epsg: 4326, transform: [west, degrees, 0, 50, 0, -degrees], bands: [() => 1] }); // oxfmt-ignore
    const paths = [0, columns].map((shift, i) => make(join(folder, `${i}.tif`), made(14 + shift * degrees)));
    const scene = openScene(paths);
    try {
      requireSameGrid(scene.bands[0]!, scene.bands[1]!);
    } finally {
      scene.close();
    }
  }

  test('that lie a pixel apart are on different grids', async () => {
    await expect(sameGrid(1)).rejects.toThrow('different grids');
  });

  test('that differ by rounding are on one grid', async () => {
    await expect(sameGrid(1e-6)).resolves.toBeUndefined();
  });
});

describe('a raster that begins west of -180', () => {
  const corners = [
    [-190, 10],
    [-170, 10],
    [-170, -10],
    [-190, -10],
  ];
  const footprint = footprintOf(corners, (x, y) => [x, y]);

  test('has a footprint on the map, in two parts', () => {
    expect(footprint?.type).toBe('MultiPolygon');
    const longitudes = JSON.stringify(footprint!.coordinates).match(/\[-?[\d.]+,/g)!.map((text) => Number(text.slice(1, -1))); // oxfmt-ignore
    expect([Math.min(...longitudes), Math.max(...longitudes)]).toEqual([-180, 180]);
  });

  test('has a box across 180°', () => {
    expect(boxOf(footprint!)).toEqual([170, -10, -170, 10]);
  });
});
