/** Only for child processes: loads GDAL. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import gdal from 'gdal-async';
import type { Geometry, Position } from 'geojson';
import { KitError } from '../../contract/kit-error.ts';
import type { Grid } from '../../raster/cog.ts';
import { boxOfPositions } from '../../raster/footprint.ts';
import type { AreaMask } from '../../raster/model/class-raster.ts';
import { fromLonLat } from '../../raster/lon-lat.ts';

/**
 * Creates the mask of a Polygon or MultiPolygon in longitude and latitude. Throws if the raster has no place.
 * Burns it window by window, so memory does not depend on the raster.
 */
export function createAreaMask(
  area: Geometry,
  { srs, geoTransform, width, height }: Grid,
  workFolder: string,
): AreaMask {
  if (!srs || !geoTransform)
    throw new KitError('no_place', 'the file has no reference system: a geometry cannot restrict it', { status: 422 });
  const transform = fromLonLat(srs);
  const polygons = area.type === 'Polygon' ? [area.coordinates] : area.type === 'MultiPolygon' ? area.coordinates : [];
  const [t0 = 0, t1 = 1, t2 = 0, t3 = 0, t4 = 0, t5 = 1] = geoTransform;
  const determinant = t1 * t5 - t2 * t4;
  // In pixels and lines: no reference system is left to be mistaken for another.
  const toPixel = ([lon = 0, lat = 0]: Position): Position => {
    const [x, y] = transform(lon, lat);
    return [((x - t0) * t5 - (y - t3) * t2) / determinant, ((y - t3) * t1 - (x - t0) * t4) / determinant];
  };
  const inPixels = polygons.map((rings) => rings.map((ring) => densified(ring).map(toPixel)));
  const [left, top, right, bottom] = boxOfPositions(inPixels.flat(2));
  if (right <= 0 || bottom <= 0 || left >= width || top >= height)
    throw new KitError('area_outside', 'the geometry lies outside of the file', { status: 422 });
  const path = join(workFolder, 'area.geojson');
  // GDAL's rows go down: the window's transformation below has them go up, in both alike.
  const mirrored = inPixels.map((rings) => rings.map((ring) => ring.map(([x = 0, y = 0]) => [x, -y])));
  writeFileSync(
    path,
    JSON.stringify({ type: 'Feature', properties: {}, geometry: { type: 'MultiPolygon', coordinates: mirrored } }),
  );
  return {
    read(x, y, columns, rows) {
      if (x >= right || y >= bottom || x + columns <= left || y + rows <= top) return null;
      const source = gdal.drivers.get('GeoJSON').open(path);
      const window = gdal.drivers.get('MEM').create('', columns, rows, 1, 'Byte');
      try {
        window.geoTransform = [x, 1, 0, -y, 0, -1];
        gdal.rasterize(window, source, ['-burn', '1']);
        const mask = new Uint8Array(columns * rows);
        window.bands.get(1).pixels.read(0, 0, columns, rows, mask);
        return mask.includes(1) ? mask : null;
      } finally {
        window.close();
        source.close();
      }
    },
  };
}

const maxDegrees = 0.1;

/** A straight edge in degrees is a curve in most reference systems: long ones get points between. */
function densified(ring: readonly Position[]): Position[] {
  return ring.flatMap(([x0 = 0, y0 = 0], i) => {
    const [x1 = x0, y1 = y0] = ring[i + 1] ?? [];
    const parts = Math.min(1000, Math.max(1, Math.ceil(Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0)) / maxDegrees)));
    return Array.from({ length: parts }, (_, k): Position => [
      x0 + ((x1 - x0) * k) / parts,
      y0 + ((y1 - y0) * k) / parts,
    ]);
  });
}
