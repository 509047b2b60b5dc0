import type { FileFacts } from '../inspect/facts.ts';
import type { RasterGrid } from './items.ts';

/** Null where the file is no raster, or its CRS has no EPSG code. */
export function gridOf({ raster }: FileFacts): RasterGrid | null {
  if (!raster?.geoTransform || raster.epsg === null) return null;
  const [x = 0, xByColumn = 0, xByRow = 0, y = 0, yByColumn = 0, yByRow = 0] = raster.geoTransform;
  return {
    epsg: raster.epsg,
    shape: [raster.height, raster.width],
    transform: [xByColumn, xByRow, x, yByColumn, yByRow, y],
  };
}
