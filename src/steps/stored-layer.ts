import gdal from 'gdal-async';
import { srsOfLayers } from '../raster/layer-srs.ts';
import { requireStored } from '../raster/stored-srs.ts';

/** Throws `KitError` (`crs_not_stored`) if the features of a GeoPackage that a step made from a raster do not lie on the raster. */
export function requireStoredLayer(raster: gdal.Dataset, path: string): void {
  const written = gdal.drivers.get('GPKG').open(path, 'r');
  const [stored = null] = srsOfLayers([written.layers.get(0)]);
  written.close();
  requireStored(raster, stored);
}
