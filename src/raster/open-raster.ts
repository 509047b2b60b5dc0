/** Only for child processes: loads GDAL. */
import { isAbsolute } from 'node:path';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { confinedRasterDrivers, rasterDrivers } from '../child/in-child.ts';
import { UnsafePathError } from '../files/index.ts';
import { metadataOf } from './metadata-of.ts';

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
  if (bands === 0) throw new RasterError('not_a_raster', withoutBands(dataset));
  const domain = domainThatNamesFiles(dataset);
  if (domain !== null) {
    throw new RasterError(
      'raster_names_files',
      `the raster's metadata (${domain}) names other files, which nothing reads; write it again without them, as \`gdal_translate -nomd\` does`,
      { domain },
    );
  }
}

/** Maximum number of variables in a message. */
const mostNames = 10;

/** The reason why a file has no band. Each variable of a file of several, such as netCDF, is a separate raster. */
function withoutBands(dataset: gdal.Dataset): string {
  // Such as `NETCDF:"file.nc":temperature`.
  const variables = Object.values(metadataOf(dataset, 'SUBDATASETS')).flatMap((value) => {
    const [, driver = '', name = ''] = /^(\w+):"[^"]*":(.+)$/.exec(value) ?? [];
    return name === '' ? [] : [{ driver, name }];
  });
  const [first] = variables;
  if (!first) return 'the file holds no raster band';
  const shown = variables.slice(0, mostNames).map(({ name }) => name);
  if (variables.length > mostNames) shown.push('...');
  return `the file holds several rasters (${shown.join(', ')}): write one of them to a separate file first, for example by gdal_translate ${first.driver}:"FILE":${first.name} one.tif`;
}

/** Metadata by which GDAL finds overviews and coordinates in other datasets, of any driver, as soon as pixels are read. netCDF makes the second of its own variables. */
function domainThatNamesFiles(dataset: gdal.Dataset): string | null {
  const isEmpty = (of: gdal.Dataset | gdal.RasterBand, domain: string) =>
    Object.keys(metadataOf(of, domain)).length === 0;
  if (!isEmpty(dataset, 'OVERVIEWS') || !dataset.bands.map((band) => isEmpty(band, 'OVERVIEWS')).every(Boolean))
    return 'OVERVIEWS';
  return dataset.driver.description !== 'netCDF' && !isEmpty(dataset, 'GEOLOCATION') ? 'GEOLOCATION' : null;
}

function tryDrivers(path: string, names: readonly string[]): gdal.Dataset | null {
  const isConfined = process.env['CONFINED'] === 'yes';
  const start = isConfined ? '' : startOf(path).toString('latin1');
  for (const name of names) {
    if (!isConfined && (confinedNames.includes(name) || (name === 'netCDF' && !start.startsWith('CDF')))) continue;
    const dataset = tryDriver(path, name);
    if (dataset) return dataset;
  }
  const format = isConfined ? undefined : formatsThatNameFiles.find(({ begins }) => begins.test(start));
  if (format && names.includes(format.driver)) {
    throw new RasterError(
      'raster_needs_confinement',
      `the file is ${format.title}, whose data may lie in other files that it names; it is opened only where bubblewrap confines what opens it`,
    );
  }
  return null;
}

const confinedNames: readonly string[] = confinedRasterDrivers;

const formatsThatNameFiles = [
  { driver: 'netCDF', title: 'netCDF-4 (HDF5)', begins: /^.HDF/s },
  { driver: 'NITF', title: 'NITF', begins: /^(NITF|NSIF)/ },
  { driver: 'HFA', title: 'Erdas Imagine', begins: /^EHFA_HE/ },
] as const;

/** One driver, named: gdal.open would try them all, VRT included. */
function tryDriver(path: string, name: string): gdal.Dataset | null {
  const reads = gdal.config.get('GDAL_DISABLE_READDIR_ON_OPEN');
  // The header of an ENVI raster lies beside it; of an empty folder GDAL takes for granted that it does not.
  if (name === 'ENVI') gdal.config.set('GDAL_DISABLE_READDIR_ON_OPEN', 'TRUE');
  try {
    return gdal.drivers.get(name).open(path, 'r');
  } catch {
    return null;
  } finally {
    if (name === 'ENVI' && reads !== null) gdal.config.set('GDAL_DISABLE_READDIR_ON_OPEN', reads);
  }
}

function startOf(path: string): Buffer {
  const [file, start] = [openSync(path, 'r'), Buffer.alloc(8)];
  try {
    return start.subarray(0, readSync(file, start, 0, start.length, 0));
  } finally {
    closeSync(file);
  }
}
