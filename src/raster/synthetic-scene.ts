/** Only for child processes: loads GDAL. */
import { writeFileSync } from 'node:fs';
import gdal from 'gdal-async';
import { toLonLat } from './lon-lat.ts';
import { createRaster } from './cog.ts';
import { syntheticBands, type SyntheticKind } from './synthetic-bands.ts';

export type { SyntheticKind } from './synthetic-bands.ts';

const pixelSizeM = 30;
const originM = [500_000, 5_400_000] as const;
const utm33n = 32633;
/** Side of a coarse pixel of the panchromatic scene's colours, in fine ones. */
const coarsePixels = 4;

function hash(x: number, y: number, seed: number): number {
  let h = Math.imul(x, 374_761_393) ^ Math.imul(y, 668_265_263) ^ Math.imul(seed, 1_442_695_041);
  h = Math.imul(h ^ (h >>> 13), 1_274_126_177);
  return ((h ^ (h >>> 16)) >>> 0) / 0xffff_ffff;
}

const smooth = (t: number) => t * t * (3 - 2 * t);

/** Smooth noise in 0 to 1 along a row, which depends on nothing but its arguments. The corners of a cell are kept for its next pixel. */
function noiseOfRow(y: number, seed: number): (x: number) => number {
  const y0 = Math.floor(y);
  const fy = smooth(y - y0);
  let [cell, topLeft, topRight, bottomLeft, bottomRight] = [NaN, 0, 0, 0, 0];
  return (x) => {
    const x0 = Math.floor(x);
    if (x0 !== cell) {
      cell = x0;
      [topLeft, topRight] = [hash(x0, y0, seed), hash(x0 + 1, y0, seed)];
      [bottomLeft, bottomRight] = [hash(x0, y0 + 1, seed), hash(x0 + 1, y0 + 1, seed)];
    }
    const fx = smooth(x - x0);
    const top = topLeft * (1 - fx) + topRight * fx;
    const bottom = bottomLeft * (1 - fx) + bottomRight * fx;
    return top * (1 - fy) + bottom * fy;
  };
}

function terrainOfRow(y: number): (x: number) => number {
  const [hills, slopes, rocks] = [noiseOfRow(y / 180, 1), noiseOfRow(y / 60, 2), noiseOfRow(y / 17, 3)];
  return (x) => 0.55 * hills(x / 180) + 0.3 * slopes(x / 60) + 0.15 * rocks(x / 17);
}

/** Reflectances (Landsat digital numbers) of water, soil and vegetation. */
const covers = {
  water: { blue: 9_400, green: 8_500, red: 7_200, nir: 5_900, swir16: 5_300 },
  soil: { blue: 9_900, green: 10_600, red: 11_800, nir: 15_200, swir16: 17_900 },
  vegetation: { blue: 8_300, green: 8_600, red: 7_300, nir: 20_800, swir16: 11_400 },
};
const bandNames = syntheticBands.multispectral;

type Ground = { readonly isWater: boolean; readonly green: number; readonly wave: number; readonly grain: number };

function groundOfRow(y: number): (x: number) => Ground {
  const terrain = terrainOfRow(y);
  const [plants, waves, grains] = [noiseOfRow(y / 40, 5), noiseOfRow(y / 5, 4), noiseOfRow(y / 3, 6)];
  return (x) => ({
    isWater: terrain(x) < 0.36,
    green: Math.min(1, Math.max(0, 1.6 * plants(x / 40) - 0.3)),
    wave: 0.96 + 0.08 * waves(x / 5),
    grain: 0.94 + 0.12 * grains(x / 3),
  });
}

function reflectance(band: (typeof bandNames)[number], at: Ground): number {
  if (at.isWater) return covers.water[band] * at.wave;
  return (covers.soil[band] * (1 - at.green) + covers.vegetation[band] * at.green) * at.grain;
}

/** Outside the swath's slanted edges there is no data, as in a real scene. */
function inSwath(x: number, y: number, size: number): boolean {
  const margin = 0.06 * size;
  const slant = 0.05 * y;
  return x > margin - slant && x < size - margin * 0.4 - slant;
}

export interface SyntheticScene {
  readonly kind: SyntheticKind | 'radar';
  /** Pixels a side. */
  readonly size: number;
  /** Projected CRS, and the north-western corner in it. Default: UTM 33N. */
  readonly place?: { readonly epsg: number; readonly origin: readonly [number, number] };
  /**
   * Position of the scene in the endless synthetic landscape, in pixels. Scenes at other positions look different.
   * Default: the beginning, with the slanted edges of a swath.
   */
  readonly shift?: number;
}

/** Metres. */
export const syntheticPixelSize = pixelSizeM;

const layouts = {
  multispectral: { dataType: 'UInt16', bands: bandNames.map((description) => ({ description })) },
  panchromatic: { dataType: 'UInt16', bands: syntheticBands.panchromatic.map((description) => ({ description })) },
  elevation: { dataType: 'Float32', bands: [{ description: syntheticBands.elevation[0], nodata: -9999 }] },
  radar: { dataType: 'Float32', bands: [{ description: syntheticBands.radar[0], nodata: -9999 }] },
} as const;

/** Writes the same raster for the same scene, on every machine: 30 m pixels. */
export async function writeSyntheticScene(path: string, { kind, size, place, shift }: SyntheticScene): Promise<void> {
  const { dataType, bands } = layouts[kind];
  const [west, north] = place?.origin ?? originM;
  const view = await createRaster(
    {
      path: `${path}.pixels`,
      grid: {
        width: size,
        height: size,
        geoTransform: [west, pixelSizeM, 0, north, 0, -pixelSizeM],
        srs: gdal.SpatialReference.fromEPSG(place?.epsg ?? utm33n),
        isPoint: false,
      },
      dataType,
      bands,
    },
    (dataset) => {
      const rows = bands.map(() => (dataType === 'UInt16' ? new Uint16Array(size) : new Float32Array(size)));
      for (let y = 0; y < size; y++) {
        const valuesAt = valuesOfRow(kind, y + (shift ?? 0));
        for (let x = 0; x < size; x++) {
          const isOutside = kind === 'multispectral' && shift === undefined && !inSwath(x, y, size);
          const values = isOutside ? [] : valuesAt(x + (shift ?? 0));
          rows.forEach((row, i) => (row[x] = values[i] ?? 0));
        }
        dataset.bands.forEach((band, id) => band.pixels.write(0, y, size, 1, rows[id - 1]));
      }
    },
  );
  gdal.drivers.get('GTiff').createCopy(path, view, ['TILED=YES', 'COMPRESS=DEFLATE', 'PREDICTOR=2']).close();
  view.close();
  gdal.drivers.get('GTiff').deleteDataset(`${path}.pixels`);
}

/** Writes the quarters of the synthetic scene of that size as GeoJSON with a field `zone`, north-western first. Gives the path. */
export function writeSyntheticZones(path: string, size: number): string {
  const lonLat = toLonLat(gdal.SpatialReference.fromEPSG(utm33n));
  const half = (size / 2) * pixelSizeM;
  const at = (column: number, row: number) => lonLat(originM[0] + column * half, originM[1] - row * half);
  const features = [0, 1].flatMap((row) =>
    [0, 1].map((column) => ({
      type: 'Feature',
      properties: { zone: `${row ? 'south' : 'north'}-${column ? 'east' : 'west'}` },
      geometry: {
        type: 'Polygon',
        coordinates: [
          [at(column, row), at(column, row + 1), at(column + 1, row + 1), at(column + 1, row), at(column, row)],
        ],
      },
    })),
  );
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features }));
  return path;
}

/** Gives the values of a pixel, band by band. */
function valuesOfRow(kind: SyntheticScene['kind'], y: number): (x: number) => readonly number[] {
  if (kind === 'elevation') {
    const terrain = terrainOfRow(y);
    return (x) => [120 + 900 * terrain(x)];
  }
  const ground = groundOfRow(y);
  if (kind === 'panchromatic') {
    const middleOf = (at: number) => Math.floor(at / coarsePixels) * coarsePixels + coarsePixels / 2;
    const coarse = groundOfRow(middleOf(y));
    return (x) => {
      const [colours, detail] = [coarse(middleOf(x)), ground(x)];
      const seen = (['blue', 'green', 'red'] as const).map((band) => reflectance(band, detail));
      const pan = seen.reduce((sum, value) => sum + value, 0) / seen.length;
      return [...(['blue', 'green', 'red'] as const).map((band) => reflectance(band, colours)), pan];
    };
  }
  if (kind === 'multispectral')
    return (x) => {
      const at = ground(x);
      return bandNames.map((band) => reflectance(band, at));
    };
  // Backscatter: smooth water is dark, and everything is speckled.
  const speckle = noiseOfRow(y * 1.7, 9);
  return (x) => {
    const { isWater, green, grain } = ground(x);
    return [(isWater ? 0.01 : 0.08 + 0.2 * green) * grain * (0.4 + 1.2 * speckle(x * 1.7))];
  };
}
