import { readFileSync, writeFileSync } from 'node:fs';
import type Gdal from 'gdal-async';
import * as z from 'zod';
import { KitError } from '../contract/kit-error.ts';

export interface Zone {
  readonly name: string;
  /** Of a MultiPolygon, in longitude and latitude. */
  readonly coordinates: readonly unknown[];
}

const areas = z.object({
  features: z.array(
    z.object({
      properties: z.record(z.string(), z.unknown()).nullable(),
      geometry: z.object({ type: z.string(), coordinates: z.array(z.unknown()) }).nullable(),
    }),
  ),
});
const mostZones = 100_000;

/** The polygons of the layer, in longitude and latitude; `label` is the field that names them. Throws `KitError` where there are none. */
export function readZones(gdal: typeof Gdal, dataset: Gdal.Dataset, label: string, path: string): Zone[] {
  gdal
    .vectorTranslate(path, dataset, ['-f', 'GeoJSON', '-t_srs', 'EPSG:4326', '-nlt', 'PROMOTE_TO_MULTI', '-dim', 'XY'])
    .close();
  const { features } = areas.parse(JSON.parse(readFileSync(path, 'utf8')));
  const zones = features.flatMap(({ properties, geometry }, i): Zone[] => {
    const given = label === '' ? undefined : properties?.[label];
    const name = typeof given === 'string' || typeof given === 'number' ? String(given) : String(i + 1);
    return geometry?.type === 'MultiPolygon' ? [{ name, coordinates: geometry.coordinates }] : [];
  });
  if (zones.length === 0 || zones.length > mostZones)
    throw new KitError('bad_zones', `the areas must be 1 to ${mostZones} polygons, and are ${zones.length}`, {
      status: 422,
    });
  return zones;
}

/** The zones in another reference system, in the layer `zones`. The caller closes it. */
export function placedZones(
  gdal: typeof Gdal,
  zones: readonly Zone[],
  srs: Gdal.SpatialReference,
  folder: string,
): Gdal.Dataset {
  const features = zones.map(({ coordinates }, i) => ({
    type: 'Feature',
    properties: { number: i + 1 },
    geometry: { type: 'MultiPolygon', coordinates },
  }));
  const path = `${folder}/numbered.geojson`;
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features }));
  const inLonLat = gdal.drivers.get('GeoJSON').open(path, 'r');
  const placed = gdal.vectorTranslate(`${folder}/numbered.gpkg`, inLonLat, [
    ...['-f', 'GPKG', '-t_srs', srs.toWKT(), '-nln', 'zones'],
  ]);
  inLonLat.close();
  return placed;
}

/** A raster on the grid of `like` that holds, from 1, the number of the zone in which a pixel's centre lies; 0 outside. The caller closes it. */
export function numberedZones(
  gdal: typeof Gdal,
  placed: Gdal.Dataset,
  like: Gdal.Dataset,
  folder: string,
): Gdal.Dataset {
  const { x, y } = like.rasterSize;
  const numbers = gdal.drivers
    .get('GTiff')
    .create(`${folder}/numbers.tif`, x, y, 1, gdal.GDT_UInt32, ['COMPRESS=DEFLATE', 'TILED=YES', 'BIGTIFF=IF_SAFER']);
  if (like.geoTransform) numbers.geoTransform = [...like.geoTransform];
  numbers.srs = like.srs;
  gdal.rasterize(numbers, placed, ['-a', 'number', '-l', 'zones']);
  numbers.flush();
  return numbers;
}
