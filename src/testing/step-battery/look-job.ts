/** Runs in a child process: reads the output of a program, for the declaration of its step. */
import { geometryName } from '../../app/processing/check-outputs.ts';
import type { Job } from '../../child/in-child.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { openVector } from '../../raster/open-vector.ts';
import { fieldTypes, type VectorOutput } from '../../steps/step.ts';
import { readOutput, type LeftOutput } from './battery-job.ts';

export interface Looked {
  readonly output: LeftOutput;
  /** GDAL's names of a raster's data types. */
  readonly dataTypes: readonly string[];
  /** Geometry and fields of features; null if there are none. */
  readonly layer: Pick<VectorOutput, 'geometry' | 'fields'> | null;
}

const typeOf = (ogr: string) => fieldTypes.find((fieldType) => ogr.startsWith(fieldType)) ?? 'string';

const job: Job<{ readonly kind: 'raster' | 'vector' }, Looked> = ({ kind }, { files: [path = ''] }) => {
  const output = readOutput(path, kind);
  if (kind === 'vector') return { output, dataTypes: [], layer: layerOf(path) };
  const dataset = openRaster(path);
  const dataTypes = dataset.bands.map((band) => band.dataType ?? '');
  dataset.close();
  return { output, dataTypes, layer: null };
};
export default job;

function layerOf(path: string): Looked['layer'] {
  const dataset = openVector(path);
  try {
    const layer = dataset.layers.get(0);
    const [geometry] = layer.features.map(geometryName);
    if (geometry === undefined) return null;
    const fields = Object.fromEntries(layer.fields.map(({ name, type }) => [name, typeOf(type)]));
    // The names of GDAL's types are those that steps declare.
    return { geometry: geometry as VectorOutput['geometry'], fields };
  } finally {
    dataset.close();
  }
}
