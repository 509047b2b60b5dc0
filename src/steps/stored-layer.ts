import gdal from 'gdal-async';
import { srsOfLayers } from '../raster/layer-srs.ts';
import { requireStored } from '../raster/stored-srs.ts';

/** Reference system of features that a step makes from a raster. Without one they lie on a plane (GeoPackage, -1), as GDAL takes a layer without one for geographic. */
export const srsOfFeatures = ({ srs }: Pick<gdal.Dataset, 'srs'>): gdal.SpatialReference =>
  srs ?? gdal.SpatialReference.fromUserInput('LOCAL_CS["Undefined Cartesian SRS",UNIT["metre",1]]');

/** Throws `KitError` (`crs_not_stored`) if the features of a GeoPackage that a step made from a raster do not lie on the raster. */
export function requireStoredLayer(raster: gdal.Dataset, path: string): void {
  if (raster.srs === null) return;
  const written = gdal.drivers.get('GPKG').open(path, 'r');
  const [stored = null] = srsOfLayers([written.layers.get(0)]);
  written.close();
  requireStored(raster, stored);
}
