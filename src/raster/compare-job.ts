/** Runs in a child process: holds one file against another, by what they say and not by their bytes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import gdal from 'gdal-async';
import type { Job } from '../child/in-child.ts';
import { openRaster } from './open-raster.ts';
import { featuresOf } from './features-text.ts';

export interface CompareInput {
  readonly kind: 'raster' | 'vector' | 'file';
}

/** Null where the two say the same; else the first difference, in words: `band 1, column 3, row 0: 0.25, not 0.5`. */
export type Difference = string | null;

const stripRows = 256;

/** The first of the two files that it is lent is held against the second. */
const job: Job<CompareInput, Difference> = ({ kind }, { files: [path = '', against = ''], workFolder, signal }) => {
  if (kind === 'file') return readFileSync(path).equals(readFileSync(against)) ? null : 'the bytes differ';
  if (kind === 'vector') return differenceOfFeatures(path, against, workFolder);
  const [a, b] = [openRaster(path), openRaster(against)];
  try {
    const said = differenceOf(describe(a), describe(b));
    if (said !== null) return said;
    const { x: width, y: height } = a.rasterSize;
    const [left, right] = [new Float64Array(width * stripRows), new Float64Array(width * stripRows)];
    for (let i = 1; i <= a.bands.count(); i++)
      for (const [what, bandOf] of [
        ['', (of: gdal.Dataset) => of.bands.get(i)],
        [' of the mask', (of: gdal.Dataset) => of.bands.get(i).getMaskBand()!],
      ] as const)
        for (let y = 0; y < height; y += stripRows) {
          signal.throwIfAborted();
          const rows = Math.min(stripRows, height - y);
          bandOf(a).pixels.read(0, y, width, rows, left);
          bandOf(b).pixels.read(0, y, width, rows, right);
          for (let p = 0; p < rows * width; p++)
            if (left[p] !== right[p] && !(Number.isNaN(left[p]) && Number.isNaN(right[p])))
              return `band ${i}, column ${p % width}, row ${y + Math.floor(p / width)}${what}: ${left[p]}, not ${right[p]}`;
        }
    return null;
  } finally {
    a.close();
    b.close();
  }
};
export default job;

/** Describes a raster without its pixels. */
function describe(dataset: gdal.Dataset): Readonly<Record<string, unknown>> {
  return {
    size: dataset.rasterSize,
    geotransform: dataset.geoTransform,
    CRS: dataset.srs?.toWKT() ?? null,
    bands: dataset.bands.map((band) => ({
      type: band.dataType,
      nodata: band.noDataValue,
      description: band.description,
      // These decide the meaning and the colour of stored numbers.
      scale: band.scale ?? 1,
      offset: band.offset ?? 0,
      unit: band.unitType ?? '',
      meaning: band.colorInterpretation,
      colors: band.colorTable?.map((color) => color) ?? null,
    })),
  };
}

function differenceOf(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): Difference {
  for (const name of Object.keys(a))
    if (!isDeepStrictEqual(a[name], b[name]))
      return `${name}: ${JSON.stringify(a[name])}, not ${JSON.stringify(b[name])}`;
  return null;
}

function differenceOfFeatures(path: string, against: string, workFolder: string): Difference {
  const a = featuresOf(path, join(workFolder, 'compared-0.geojson'));
  const b = featuresOf(against, join(workFolder, 'compared-1.geojson'));
  if (a.length !== b.length) return `${a.length} features, not ${b.length}`;
  const at = a.findIndex((feature, i) => !isDeepStrictEqual(feature, b[i]));
  return at < 0 ? null : `feature ${at + 1}: ${shown(a[at])}, not ${shown(b[at])}`;
}

const shown = (feature: unknown) => JSON.stringify(feature).slice(0, 300);
