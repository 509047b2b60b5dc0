/** Only for child processes: loads GDAL. */
import { readFileSync } from 'node:fs';
import gdal from 'gdal-async';
import { ownJson } from '../files/index.ts';
import { openVector } from './open-vector.ts';

/** Reads a vector file as GeoJSON features, in the order of the file. Uses `workFile` as a temporary file. */
export function featuresOf(path: string, workFile: string): readonly unknown[] {
  const dataset = openVector(path);
  try {
    const options = ['-f', 'GeoJSON', '-nln', 'features', '-lco', 'COORDINATE_PRECISION=15'];
    gdal.vectorTranslate(workFile, dataset, options).close();
    return ownJson<{ features: readonly unknown[] }>(readFileSync(workFile, 'utf8')).features;
  } finally {
    dataset.close();
  }
}
