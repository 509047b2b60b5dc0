/** Runs in a child process: footprints of rectangles in reference systems. */
import gdal from 'gdal-async';
import type { Job } from '../../src/child/in-child.ts';
import { footprintOf, type Footprint } from '../../src/raster/footprint.ts';
import { toLonLat } from '../../src/raster/lon-lat.ts';
import type { ProjectedPlace } from '../../src/sandbox/stac/seed.ts';

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
