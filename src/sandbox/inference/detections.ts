import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import gdal from 'gdal-async';
import type { Feature, Position } from 'geojson';
import { toLonLat } from '../../raster/lon-lat.ts';
import type { Model } from './models.ts';

/** Longitude and latitude of a raster's coordinates, null where a point has none; without a CRS they stay as they are. */
export function placing(srs: gdal.SpatialReference | null): (x: number, y: number) => Position | null {
  const transform = srs ? toLonLat(gdal, srs) : null;
  return (x, y) => {
    if (!transform) return [x, y];
    const place = transform(x, y);
    return place && [...place];
  };
}

/** All of them, or null where one is missing. */
export function allPlaced(positions: readonly (Position | null)[]): Position[] | null {
  const placed = positions.filter((position) => position !== null);
  return placed.length === positions.length ? placed : null;
}

/** Writes features as GeoJSON one after the other, so that their number does not matter. */
export async function writeFeatures(path: string, model: Model, features: Iterable<Feature>): Promise<void> {
  const out = createWriteStream(path);
  const head = { type: 'FeatureCollection', model: model.name, version: model.version, labels: model.labels };
  out.write(`${JSON.stringify(head).slice(0, -1)},"features":[`);
  let separator = '\n';
  for (const feature of features) {
    if (!out.write(separator + JSON.stringify(feature))) await once(out, 'drain');
    separator = ',\n';
  }
  out.end('\n]}\n');
  await once(out, 'finish');
}
