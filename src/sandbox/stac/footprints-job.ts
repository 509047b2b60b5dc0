/** Runs in a child process: footprints of rectangles in reference systems. */
import gdal from 'gdal-async';
import type { Job } from '../../child/in-child.ts';
import { footprintOf, type Footprint } from '../../raster/footprint.ts';
import { toLonLat } from '../../raster/lon-lat.ts';

/** North-western corner, width and height in the units of the CRS. */
export interface ProjectedPlace {
  readonly epsg: number;
  readonly origin: readonly [number, number];
  readonly size: readonly [number, number];
}

const job: Job<readonly ProjectedPlace[], (Footprint | null)[]> = (places) =>
  places.map(({ epsg, origin: [west, north], size: [width, height] }) => {
    const corners = [
      [west, north],
      [west, north - height],
      [west + width, north - height],
      [west + width, north],
    ];
    return footprintOf(corners, toLonLat(gdal.SpatialReference.fromEPSG(epsg)));
  });
export default job;
