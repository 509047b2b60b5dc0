/** Runs in a child process: footprints of squares in projected reference systems. */
import gdal from 'gdal-async';
import type { Job } from '../../raster/child/protocol.ts';
import { footprintOf, type Footprint } from '../../raster/footprint.ts';
import { toLonLat } from '../../raster/lon-lat.ts';

/** North-western corner and side in the units of the CRS. */
export interface ProjectedSquare {
  readonly epsg: number;
  readonly origin: readonly [number, number];
  readonly side: number;
}

const job: Job<readonly ProjectedSquare[], (Footprint | null)[]> = async (squares) =>
  squares.map(({ epsg, origin: [west, north], side }) => {
    const corners = [[west, north], [west, north - side], [west + side, north - side], [west + side, north]];
    return footprintOf(corners, toLonLat(gdal.SpatialReference.fromEPSG(epsg)));
  });
export default job;
