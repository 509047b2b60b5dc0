/** Runs in a child process: computes a digest of a file's content that ignores compression and tags. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Job } from '../child/in-child.ts';
import { featuresOf } from './features-text.ts';
import { openRaster } from './open-raster.ts';
import { unwrap } from './unwrap.ts';

const stripRows = 256;

/** Job: SHA-256 in hexadecimal of a raster's size, place, types and pixels, or of a vector file's features. */
const job: Job<'raster' | 'vector', string> = async (kind, { files: [path = ''], workFolder, signal }) => {
  const unpacked = (await unwrap(path, workFolder, signal))?.path ?? path;
  if (kind === 'vector') {
    const features = featuresOf(unpacked, join(workFolder, 'features.geojson'));
    return createHash('sha256').update(JSON.stringify(features)).digest('hex');
  }
  const dataset = openRaster(unpacked);
  try {
    const hash = createHash('sha256');
    const { x: width, y: height } = dataset.rasterSize;
    const bands = dataset.bands.map((band) => band);
    hash.update(
      JSON.stringify({
        width,
        height,
        geoTransform: dataset.geoTransform,
        crs: dataset.srs?.toWKT() ?? null,
        bands: bands.map((band) => ({ type: band.dataType, nodata: String(band.noDataValue) })),
      }),
    );
    const strip = new Float64Array(width * Math.min(stripRows, height));
    for (const band of bands)
      for (let y = 0; y < height; y += stripRows) {
        signal.throwIfAborted();
        const rows = Math.min(stripRows, height - y);
        band.pixels.read(0, y, width, rows, strip);
        hash.update(new Uint8Array(strip.buffer, 0, width * rows * Float64Array.BYTES_PER_ELEMENT));
      }
    return hash.digest('hex');
  } finally {
    dataset.close();
  }
};
export default job;
