/** Only for child processes: loads GDAL. */
import { statSync } from 'node:fs';
import { extname, isAbsolute } from 'node:path';
import gdal from 'gdal-async';
import { RasterError } from './open-raster.ts';
import { vectorDriverOf, vectorExtensions } from './vector-files.ts';
import { UnsafePathError } from '../files/index.ts';

/** Opens a local file of features, read-only, with the driver of its ending. `path` is absolute and already resolved. */
export function openVector(path: string): gdal.Dataset {
  if (!isAbsolute(path) || /^[\\/]vsi/i.test(path) || !statSync(path).isFile())
    throw new UnsafePathError(path, 'is not a local file');
  const driver = vectorDriverOf[extname(path).toLowerCase()];
  if (!driver) throw new RasterError('not_a_vector', `the file is none of these: ${[...vectorExtensions].join(' ')}`);
  let dataset: gdal.Dataset;
  try {
    // Text that looks like a date or a time stays text.
    dataset = gdal.drivers.get(driver).open(path, 'r', driver === 'GeoJSON' ? ['DATE_AS_STRING=YES'] : []);
  } catch {
    // GDAL opens no CSV of one column.
    const hint = driver === 'CSV' ? ' of two columns or more, such as name,WKT' : '';
    throw new RasterError('not_a_vector', `the file is no ${driver}${hint}`);
  }
  if (dataset.layers.count() === 0) {
    dataset.close();
    throw new RasterError('not_a_vector', 'the file holds no layer');
  }
  return dataset;
}
