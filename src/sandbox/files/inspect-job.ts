/** Runs in a child process: what an uploaded file is, by its own bytes. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import gdal from 'gdal-async';
import sharp from 'sharp';
import { KitError } from '../../contract/kit-error.ts';
import type { SourceType } from '../../contract/index.ts';
import type { Job } from '../../raster/child-protocol.ts';
import { openRaster, RasterError } from '../../raster/open-raster.ts';
import { kindOf, vectorDrivers, type FileKind } from './file-kinds.ts';

export interface InspectInput {
  readonly path: string;
  readonly sourceType: SourceType;
}

export interface BandFacts {
  readonly dataType: string;
  readonly nodata: number | null;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stdDev: number;
}

/** What was found out about a readable file. */
export interface FileFacts {
  readonly kind: Exclude<FileKind, 'any'>;
  readonly mediaType: string;
  readonly sha256: string;
  /** Raster only. */
  readonly raster?: { readonly driver: string; readonly width: number; readonly height: number; readonly crs: string | null; readonly bands: readonly BandFacts[] };
}

type Found = Omit<FileFacts, 'sha256'>;

const rasterMediaTypes: Readonly<Record<string, string>> = { GTiff: 'image/tiff', JP2OpenJPEG: 'image/jp2', PNG: 'image/png', JPEG: 'image/jpeg', netCDF: 'application/x-netcdf' };
const vectorMediaTypes: Readonly<Record<string, string>> = { GeoJSON: 'application/geo+json', GPKG: 'application/geopackage+sqlite3', KML: 'application/vnd.google-earth.kml+xml', GML: 'application/gml+xml', CSV: 'text/csv' };

/** A file is not what it claims to be. */
function notA(what: string): KitError {
  return new KitError('not_what_it_claims', `the file is no ${what} that can be read`, { status: 422 });
}

/** Job: reads the file as what its source type claims; UNKNOWN tries all. Throws where nothing fits. */
const job: Job<InspectInput, FileFacts> = async ({ path, sourceType }) => {
  const kind = kindOf[sourceType];
  const found = kind === 'any' ? await detect(path) : await readers[kind](path, sourceType);
  return { ...found, sha256: await digest(path) };
};
export default job;

async function detect(path: string): Promise<Found> {
  for (const kind of ['raster', 'pdf', 'image', 'czml', 'tiles3d', 'video', 'vector'] as const) {
    try {
      return await readers[kind](path, 'UNKNOWN');
    } catch {
      continue;
    }
  }
  throw notA('file of a known kind');
}

const readers: Record<Exclude<FileKind, 'any'>, (path: string, sourceType: SourceType) => Promise<Found> | Found> = {
  raster: readRaster,
  vector: readVector,
  async pdf(path) {
    const { start, end } = await readEnds(path);
    if (!start.subarray(0, 1024).includes('%PDF-') || !end.includes('%%EOF')) throw notA('PDF');
    return { kind: 'pdf', mediaType: 'application/pdf' };
  },
  async image(path) {
    const { format } = await sharp(path).metadata().catch(() => ({ format: undefined }));
    if (!format) throw notA('image');
    return { kind: 'image', mediaType: format === 'svg' ? 'image/svg+xml' : `image/${format}` };
  },
  async czml(path) {
    const packets = await readJson(path, 'CZML document');
    const first: unknown = Array.isArray(packets) ? packets[0] : undefined;
    if ((first as { id?: unknown } | undefined)?.id !== 'document') throw notA('CZML document');
    return { kind: 'czml', mediaType: 'application/json' };
  },
  async tiles3d(path) {
    const tileset = (await readJson(path, '3D Tiles tileset')) as { asset?: { version?: unknown }; root?: unknown } | null;
    if (typeof tileset?.asset?.version !== 'string' || typeof tileset.root !== 'object') throw notA('3D Tiles tileset');
    return { kind: 'tiles3d', mediaType: 'application/json' };
  },
  async video(path) {
    const { start } = await readEnds(path);
    const isTransportStream = start.length >= 377 && [0, 188, 376].every((at) => start[at] === 0x47);
    if (isTransportStream) return { kind: 'video', mediaType: 'video/mp2t' };
    if (start.subarray(4, 8).toString('latin1') === 'ftyp') return { kind: 'video', mediaType: 'video/mp4' };
    throw notA('video');
  },
};

function readRaster(path: string, sourceType: SourceType): Found {
  let dataset: gdal.Dataset;
  try {
    dataset = sourceType === 'NETCDF' ? openRaster(path, ['netCDF']) : openRaster(path);
  } catch (error) {
    if (error instanceof RasterError) throw error;
    throw notA('raster');
  }
  try {
    const bands = dataset.bands.map((band): BandFacts => {
      const { min, max, mean, std_dev: stdDev } = statistics(band);
      return { dataType: band.dataType ?? 'unknown', nodata: band.noDataValue, min, max, mean, stdDev };
    });
    const { x: width, y: height } = dataset.rasterSize;
    const driver = dataset.driver.description;
    const crs = dataset.srs?.toWKT() ?? null;
    return { kind: 'raster', mediaType: rasterMediaTypes[driver] ?? 'application/octet-stream', raster: { driver, width, height, crs, bands } };
  } finally {
    dataset.close();
  }
}

/** Reads pixels: a raster whose header is whole and whose pixels are cut off is found out here. */
function statistics(band: gdal.RasterBand): gdal.stats {
  const { x, y } = band.size;
  try {
    band.pixels.read(x - 1, y - 1, 1, 1);
    return band.computeStatistics(true);
  } catch (error) {
    // GDAL's own word for a band that is all nodata, which is no fault.
    if (error instanceof Error && /no valid pixels/i.test(error.message)) return { min: NaN, max: NaN, mean: NaN, std_dev: NaN };
    throw notA('whole raster: its pixels cannot be read');
  }
}

function readVector(path: string): Found {
  for (const name of vectorDrivers) {
    try {
      const dataset = gdal.drivers.get(name).open(path, 'r');
      const layers = dataset.layers.count();
      dataset.close();
      if (layers > 0) return { kind: 'vector', mediaType: vectorMediaTypes[name] ?? 'application/octet-stream' };
    } catch {
      continue;
    }
  }
  throw notA(`vector file (${vectorDrivers.join(', ')})`);
}

async function readEnds(path: string): Promise<{ start: Buffer; end: Buffer }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const length = Math.min(size, 4096);
    const start = await file.read(Buffer.alloc(length), 0, length, 0);
    const end = await file.read(Buffer.alloc(length), 0, length, size - length);
    return { start: start.buffer, end: end.buffer };
  } finally {
    await file.close();
  }
}

const maxJsonBytes = 64 * 1024 * 1024;

async function readJson(path: string, what: string): Promise<unknown> {
  if ((await stat(path)).size > maxJsonBytes) throw notA(what);
  return readFile(path, 'utf8').then((text) => JSON.parse(text) as unknown).catch(() => {
    throw notA(what);
  });
}

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes as Buffer);
  return hash.digest('hex');
}
