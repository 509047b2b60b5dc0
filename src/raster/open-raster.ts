/** Only for child processes: loads GDAL. */
import { isAbsolute } from 'node:path';
import { statSync } from 'node:fs';
import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { UnsafePathError } from './safe-path.ts';

/** A file that is no raster, or one that may not be read. */
export class RasterError extends KitError {
  constructor(code: 'not_a_raster' | 'raster_too_large', message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(code, message, { status: 422, data });
  }
}

/**
 * Drivers that read the one file they are given and nothing it names. VRT, raw-with-header formats and
 * HFA are left out because what is in the file decides which other files are read.
 */
export const rasterDrivers = ['GTiff', 'JP2OpenJPEG', 'PNG', 'JPEG', 'netCDF', 'AAIGrid', 'DTED', 'SRTMHGT'] as const;

/** Checked on the header, before a pixel is read. */
export const rasterBudget = { pixels: 10_000_000_000, bands: 1_000 };

/** Opens a local raster file, read-only, through the allowlist. `path` is absolute and already resolved. */
export function openRaster(path: string, drivers: readonly string[] = rasterDrivers): gdal.Dataset {
  if (!isAbsolute(path) || /^[\\/]vsi/i.test(path) || !statSync(path).isFile()) throw new UnsafePathError(path, 'is not a local file');
  const dataset = tryDrivers(path, drivers);
  if (!dataset) throw new RasterError('not_a_raster', `the file is no raster that may be read (${drivers.join(', ')})`);
  const { x, y } = dataset.rasterSize;
  const bands = dataset.bands.count();
  if (x * y > rasterBudget.pixels || bands > rasterBudget.bands) {
    dataset.close();
    throw new RasterError('raster_too_large', `the raster claims ${x} x ${y} pixels in ${bands} bands; at most ${rasterBudget.pixels} pixels in ${rasterBudget.bands} bands are read`, { x, y, bands });
  }
  if (bands === 0) {
    dataset.close();
    throw new RasterError('not_a_raster', 'the file holds no raster band');
  }
  return dataset;
}

function tryDrivers(path: string, names: readonly string[]): gdal.Dataset | null {
  for (const name of names) {
    try {
      // One driver, named: gdal.open would try them all, VRT included.
      return gdal.drivers.get(name).open(path, 'r');
    } catch {
      continue;
    }
  }
  return null;
}
