import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import gdal from 'gdal-async';

let collectGarbage: (() => void) | undefined;

// oxlint-disable-next-line no-restricted-properties -- The only place that may.
const wktOf = (layer: gdal.Layer): string | null => layer.srs?.toWKT() ?? null;

/**
 * Returns the reference system of each layer, or null. Use it instead of `layer.srs`: gdal-async keeps the object of `layer.srs` under the address of GDAL's own
 * object, which ends with the dataset. GDAL may then give that address to the reference system of a raster, and gdal-async returns the layer's instead.
 * So this function drops the objects before the dataset can be closed, and returns others. It takes some milliseconds, however many layers there are.
 */
export function srsOfLayers(layers: readonly gdal.Layer[]): (gdal.SpatialReference | null)[] {
  const wkts = layers.map(wktOf);
  if (!collectGarbage) {
    setFlagsFromString('--expose-gc');
    // The flag adds this function to new contexts.
    collectGarbage = runInNewContext('gc') as () => void;
  }
  collectGarbage();
  return wkts.map((wkt) => (wkt === null ? null : gdal.SpatialReference.fromWKT(wkt)));
}
