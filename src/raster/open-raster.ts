/** Only for child processes: loads GDAL. */
import { isAbsolute } from 'node:path';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { rasterDrivers } from './drivers.ts';
import { UnsafePathError } from './safe-path.ts';

/** A file that is no raster, or one that may not be read. */
export class RasterError extends KitError {
  constructor(
    code: 'not_a_raster' | 'not_a_vector' | 'raster_too_large' | 'raster_names_files' | 'raster_needs_confinement',
    message: string,
    data: Readonly<Record<string, unknown>> = {},
  ) {
    super(code, message, { status: 422, data });
  }
}

/** Checked on the header, before a pixel is read. */
export const rasterBudget = { pixels: 10_000_000_000, bands: 1_000 };

/** Opens a local raster file, read-only, through the allowlist. `path` is absolute and already resolved. */
export function openRaster(path: string, drivers: readonly string[] = rasterDrivers): gdal.Dataset {
  if (!isAbsolute(path) || /^[\\/]vsi/i.test(path) || !statSync(path).isFile())
    throw new UnsafePathError(path, 'is not a local file');
  const dataset = tryDrivers(path, drivers);
  if (!dataset) throw new RasterError('not_a_raster', `the file is no raster of these formats (${drivers.join(', ')})`);
  try {
    requireReadable(dataset);
  } catch (error) {
    dataset.close();
    throw error;
  }
  return dataset;
}

function requireReadable(dataset: gdal.Dataset): void {
  const { x, y } = dataset.rasterSize;
  const bands = dataset.bands.count();
  if (x * y > rasterBudget.pixels || bands > rasterBudget.bands) {
    throw new RasterError(
      'raster_too_large',
      `the raster claims ${x} x ${y} pixels in ${bands} bands; the limit is ${rasterBudget.pixels} pixels in ${rasterBudget.bands} bands`,
      { x, y, bands },
    );
  }
  if (bands === 0) throw new RasterError('not_a_raster', 'the file holds no raster band');
  const domain = domainThatNamesFiles(dataset);
  if (domain !== null) {
    throw new RasterError(
      'raster_names_files',
      `the raster's metadata (${domain}) names other files, which nothing reads; write it again without them, as \`gdal_translate -nomd\` does`,
      { domain },
    );
  }
}

/** Metadata by which GDAL finds overviews and coordinates in other datasets, of any driver, as soon as pixels are read. netCDF makes the second of its own variables. */
function domainThatNamesFiles(dataset: gdal.Dataset): string | null {
  const isEmpty = (of: gdal.Dataset | gdal.RasterBand, domain: string) =>
    Object.keys(of.getMetadata(domain) as object).length === 0;
  if (!isEmpty(dataset, 'OVERVIEWS') || !dataset.bands.map((band) => isEmpty(band, 'OVERVIEWS')).every(Boolean))
    return 'OVERVIEWS';
  return dataset.driver.description !== 'netCDF' && !isEmpty(dataset, 'GEOLOCATION') ? 'GEOLOCATION' : null;
}

function tryDrivers(path: string, names: readonly string[]): gdal.Dataset | null {
  for (const name of names) {
    if (name === 'netCDF' && process.env['CONFINED'] !== 'yes' && !isClassicNetcdf(path)) continue;
    try {
      // One driver, named: gdal.open would try them all, VRT included.
      return gdal.drivers.get(name).open(path, 'r');
    } catch {
      continue;
    }
  }
  if (names.includes('netCDF') && process.env['CONFINED'] !== 'yes' && isHdf5(path)) {
    throw new RasterError(
      'raster_needs_confinement',
      'the file is netCDF-4 (HDF5), whose data may lie in other files that it names; it is opened only where bubblewrap confines what opens it',
    );
  }
  return null;
}

function isClassicNetcdf(path: string): boolean {
  return startOf(path).subarray(0, 3).toString('latin1') === 'CDF';
}

function isHdf5(path: string): boolean {
  return startOf(path).subarray(1, 4).toString('latin1') === 'HDF';
}

function startOf(path: string): Buffer {
  const [file, start] = [openSync(path, 'r'), Buffer.alloc(8)];
  try {
    return start.subarray(0, readSync(file, start, 0, start.length, 0));
  } finally {
    closeSync(file);
  }
}
