/** Only for child processes: metadata of files that the kit itself has written. */
import { appendFileSync, closeSync, fstatSync, openSync, readSync, truncateSync } from 'node:fs';
import { extname } from 'node:path';
import gdal from 'gdal-async';
import { ownJson } from '../files/index.ts';
import { openRaster } from './open-raster.ts';
import { openVector } from './open-vector.ts';
import { metadataOf } from './metadata-of.ts';

export type Metadata = Readonly<Record<string, string>>;

/**
 * Puts metadata into a finished file: GeoTIFF, GeoPackage, GeoJSON. False where the format has no room for them, and for a Cloud
 * Optimized GeoTIFF, whose order it would break: that bears what it was written with.
 */
export function addMetadata(path: string, metadata: Metadata): boolean {
  const ending = extname(path).toLowerCase();
  if (ending === '.geojson' || ending === '.json') return addToGeoJson(path, metadata);
  const driver = { '.tif': 'GTiff', '.tiff': 'GTiff', '.gpkg': 'GPKG' }[ending];
  if (driver === undefined) return false;
  const known = readMetadata(path);
  if (Object.entries(metadata).every(([name, value]) => known[name] === value)) return true;
  if (isCog(path)) return false;
  const dataset = gdal.drivers.get(driver).open(path, 'r+');
  try {
    dataset.setMetadata({ ...metadataOf(dataset), ...metadata });
    dataset.flush();
  } finally {
    dataset.close();
  }
  return true;
}

/** A file's metadata; none of a format without room for them. Throws `RasterError` for a file that is neither raster nor features. */
export function readMetadata(path: string): Metadata {
  if (/\.(geo)?json$/i.test(path)) return readFromGeoJson(path);
  const dataset = /\.(gpkg|fgb|csv)$/i.test(path) ? openVector(path) : openRaster(path);
  try {
    return metadataOf(dataset);
  } finally {
    dataset.close();
  }
}

function isCog(path: string): boolean {
  if (/\.gpkg$/i.test(path)) return false;
  const dataset = openRaster(path, ['GTiff']);
  try {
    return metadataOf(dataset, 'IMAGE_STRUCTURE')['LAYOUT'] === 'COG';
  } finally {
    dataset.close();
  }
}

/** A member of the collection that GeoJSON does not know, which RFC 7946 (6.1) lets be there: last, as readers tell the format by what is first. */
const before = ',"metadata":';
const maxMetadataBytes = 4 * 1024 * 1024;

function addToGeoJson(path: string, metadata: Metadata): boolean {
  const { size, end } = endOf(path, 1_024);
  const at = end.search(/\}\s*$/);
  if (at < 0 || /\{\s*$/.test(end.slice(0, at))) return false;
  truncateSync(path, size - Buffer.byteLength(end.slice(at)));
  appendFileSync(path, `${before}${JSON.stringify(metadata)}}\n`);
  return true;
}

function readFromGeoJson(path: string): Metadata {
  const { end } = endOf(path, maxMetadataBytes);
  const at = end.lastIndexOf(before);
  try {
    return at < 0
      ? {}
      : ownJson<Metadata>(
          end
            .slice(at + before.length)
            .trim()
            .slice(0, -1),
        );
  } catch {
    return {};
  }
}

function endOf(path: string, bytes: number): { size: number; end: string } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const end = Buffer.alloc(Math.min(bytes, size));
    readSync(file, end, 0, end.length, size - end.length);
    return { size, end: end.toString('utf8') };
  } finally {
    closeSync(file);
  }
}
