/** Only for child processes: loads GDAL. */
import { basename } from 'node:path';
import type gdal from 'gdal-async';
import { openVector } from './open-vector.ts';
import { SceneError } from './match-band.ts';

/** The features of one run's input, opened read-only, each file with the driver of its ending. */
export interface Features {
  readonly datasets: readonly gdal.Dataset[];
  readonly layers: readonly gdal.Layer[];
  /** The one layer of the input; an error where it has several. */
  onlyLayer(): gdal.Layer;
  close(): void;
}

/** Opens `paths` (absolute, already resolved). */
export function openFeatures(paths: readonly string[]): Features {
  const datasets: gdal.Dataset[] = [];
  const close = () => datasets.forEach((dataset) => dataset.close());
  try {
    for (const path of paths) datasets.push(openVector(path));
  } catch (error) {
    close();
    throw error;
  }
  const layers = datasets.flatMap((dataset) => dataset.layers.map((layer) => layer));
  return {
    datasets,
    layers,
    onlyLayer() {
      if (layers.length !== 1 || !layers[0])
        throw new SceneError(
          'not_one_layer',
          `the step takes one layer of features, the input has ${layers.length}: ${layers.map(({ name }) => name).join(', ')}`,
          { fileNames: paths.map((path) => basename(path)) },
        );
      return layers[0];
    },
    close,
  };
}
