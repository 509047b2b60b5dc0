/** Only for child processes: loads GDAL. */
import { readFileSync } from 'node:fs';
import gdal from 'gdal-async';
import { openVector } from './open-vector.ts';

/** What a file of features says, as GeoJSON features in their order. `workFile`: a path to write to. */
export function featuresOf(path: string, workFile: string): readonly unknown[] {
  const dataset = openVector(path);
  try {
    const options = ['-f', 'GeoJSON', '-nln', 'features', '-lco', 'COORDINATE_PRECISION=15'];
    gdal.vectorTranslate(workFile, dataset, options).close();
    return (JSON.parse(readFileSync(workFile, 'utf8')) as { features: readonly unknown[] }).features;
  } finally {
    dataset.close();
  }
}
