/** Only for child processes: loads GDAL. */
import gdal from 'gdal-async';
import { BandReader, maskOfAllBands, requireOneNodata } from './band-reader.ts';
import type { JobContext } from '../child/in-child.ts';
import { keepStatistics, keptStatistics, statisticsMetadata, statisticsOf, type BandStatistics } from './statistics.ts';
import { metadataOf } from './metadata-of.ts';
import { transformOf } from './transform-of.ts';
import { requireStored } from './stored-srs.ts';

export const cogCompressions = ['DEFLATE', 'LZW', 'ZSTD', 'NONE'] as const;
export const cogResamplings = ['NEAREST', 'AVERAGE', 'BILINEAR', 'CUBIC', 'MODE'] as const;

export interface CogOptions {
  readonly compression: (typeof cogCompressions)[number];
  /** Side of a tile in pixels. */
  readonly blockSize: number;
  /** Resampling method for overviews. */
  readonly resampling: (typeof cogResamplings)[number];
}

/** Facts of an output that its host knows. */
export interface CogFacts {
  /** Unit of bands that state none. Default: they state none. */
  readonly unit?: string | undefined;
  /** Names of metadata that the source does not hand on. Default: none. */
  readonly without?: readonly string[];
}

/**
 * Writes `source` as a Cloud Optimized GeoTIFF with overviews and exact statistics of each band, on all cores. Adds `metadata` to the metadata of the source.
 * Throws `KitError` if bands declare different nodata values, because a GeoTIFF stores one for all bands (`nodata_differs`), or if it cannot store the reference
 * system (`crs_not_stored`).
 */
export function writeCog(
  source: gdal.Dataset,
  path: string,
  options: CogOptions,
  context: JobContext,
  metadata: Readonly<Record<string, string>> = {},
  { unit, without = [] }: CogFacts = {},
): void {
  requireOneNodata(source);
  const bits = source.bands.map((band) => metadataOf(band, 'IMAGE_STRUCTURE')['NBITS']);
  const hasOddBits = bits.some((count) => count !== undefined);
  const predictor = options.compression === 'NONE' || hasOddBits ? [] : ['PREDICTOR=YES'];
  const view = gdal.drivers.get('VRT').createCopy('', source);
  // A GeoTIFF has one depth for all bands, and GDAL would take that of the first.
  if (new Set(bits).size > 1) for (const band of view.bands.map((viewed) => viewed)) dropBits(band);
  // GDAL's default, ZSTD, spends a tenth of the run on temporary overviews that are read once. With NONE, GDAL computes other pixels at odd sizes.
  gdal.config.set('COG_TMP_COMPRESSION', 'PACKBITS');
  try {
    const inherited = Object.entries(metadataOf(source)).filter(([name]) => !without.includes(name));
    view.setMetadata({ ...Object.fromEntries(inherited), ...metadata });
    // A copy of a view passes the value as text, which rounds it.
    source.bands.forEach(({ id, noDataValue }) => {
      const band = view.bands.get(id ?? 1);
      if (noDataValue !== null && !Object.is(band.noDataValue, noDataValue)) band.noDataValue = noDataValue;
      if (unit !== undefined && !band.unitType) band.unitType = unit;
    });
    const statistics = storedStatistics(source);
    // GDAL counts bands from 1.
    statistics.forEach((statistic, i) =>
      view.bands.get(i + 1).setMetadata(statisticsMetadata(source.bands.get(i + 1), statistic)),
    );
    gdal.drivers
      .get('COG')
      .createCopy(
        path,
        view,
        [
          `COMPRESS=${options.compression}`,
          ...predictor,
          `BLOCKSIZE=${options.blockSize}`,
          `RESAMPLING=${options.resampling}`,
          'OVERVIEWS=IGNORE_EXISTING',
          'NUM_THREADS=ALL_CPUS',
          'BIGTIFF=IF_SAFER',
        ],
        false,
        { progress_cb: (fraction) => context.progress(fraction) },
      )
      .close();
  } finally {
    view.close();
  }
  requireStored(source, storedSrs(path));
}

/** The reference system that a GeoTIFF has on disk. */
function storedSrs(path: string): gdal.SpatialReference | null {
  const written = gdal.drivers.get('GTiff').open(path, 'r');
  try {
    return written.srs;
  } finally {
    written.close();
  }
}

/** Gives a band of a view the whole depth of its type. */
function dropBits(band: gdal.RasterBand): void {
  const others = Object.entries(metadataOf(band, 'IMAGE_STRUCTURE')).filter(([name]) => name !== 'NBITS');
  band.setMetadata(Object.fromEntries(others), 'IMAGE_STRUCTURE');
}

/** Statistics of stored numbers of each band, as GDAL defines them. Null for complex numbers. */
function storedStatistics(source: gdal.Dataset): (BandStatistics | null)[] {
  const bands = source.bands.map((band) => band);
  const isUnknown = (band: gdal.RasterBand) => !band.dataType?.startsWith('C') && keptStatistics(band) === undefined;
  const counted = statisticsOf(bands.filter(isUnknown).map((band) => new BandReader({ band }, { scaling: 'stored' })));
  return bands.map((band) => (isUnknown(band) ? counted.shift() : keptStatistics(band)) ?? null);
}

/** Size and position of the pixels. */
export interface Grid {
  readonly width: number;
  readonly height: number;
  readonly geoTransform: readonly number[] | null;
  readonly srs: gdal.SpatialReference | null;
  /** True where the file says that its coordinates are those of pixel centres (`AREA_OR_POINT=Point`). */
  readonly isPoint: boolean;
  /** Ground control points and their reference system, for a raster without a geotransform. Default: none. */
  readonly controlPoints?: { readonly points: readonly object[]; readonly projection: string };
  /** Rational polynomial coefficients, as GDAL's metadata. Default: none. */
  readonly rpc?: Readonly<Record<string, string>>;
}

export function gridOf(dataset: gdal.Dataset): Grid {
  const { x: width, y: height } = dataset.rasterSize;
  const { AREA_OR_POINT } = metadataOf(dataset);
  // gdal-async has the type `any[]` for them.
  const points = dataset.getGCPs() as object[];
  const rpc = metadataOf(dataset, 'RPC');
  return {
    ...{ width, height, geoTransform: transformOf(dataset), srs: dataset.srs, isPoint: AREA_OR_POINT === 'Point' },
    ...(points.length > 0 && { controlPoints: { points, projection: dataset.getGCPProjection() } }),
    ...(Object.keys(rpc).length > 0 && { rpc }),
  };
}

export interface NewRaster {
  /** File that keeps the pixels until the caller is done with the result. */
  readonly path: string;
  readonly grid: Grid;
  readonly dataType: string;
  readonly bands: readonly { readonly description: string; readonly nodata?: number | undefined }[];
}

/** Makes a raster, lets `fill` write it, and gives it back for reading: what a step hands to `writeCog`. The caller closes it. */
export async function createRaster(
  raster: NewRaster,
  fill: (dataset: gdal.Dataset) => Promise<void> | void,
): Promise<gdal.Dataset> {
  const { grid } = raster;
  const dataset = gdal.drivers
    .get('GTiff')
    .create(raster.path, grid.width, grid.height, raster.bands.length, raster.dataType, [
      'TILED=YES',
      'BLOCKXSIZE=256',
      'BLOCKYSIZE=256',
      // A strip is written band by band.
      'INTERLEAVE=BAND',
      'BIGTIFF=IF_SAFER',
    ]);
  if (grid.isPoint) dataset.setMetadata({ AREA_OR_POINT: 'Point' });
  if (grid.geoTransform) dataset.geoTransform = [...grid.geoTransform];
  if (grid.srs) dataset.srs = grid.srs;
  raster.bands.forEach(({ nodata }, i) => {
    if (nodata !== undefined) dataset.bands.get(i + 1).noDataValue = nodata;
  });
  await fill(dataset);
  const made = nameBands(dataset, raster.bands);
  if (grid.srs) requireStored({ ...grid, rasterSize: { x: grid.width, y: grid.height } }, storedSrs(raster.path));
  // The view does not take these from the file below it.
  if (grid.controlPoints) made.setGCPs([...grid.controlPoints.points], grid.controlPoints.projection);
  if (grid.rpc) made.setMetadata({ ...grid.rpc }, 'RPC');
  return made;
}

/** Gives the bands of a raster that lies in the work folder their names, and closes it: what comes back is for reading, and for the caller to close. */
export function nameBands(dataset: gdal.Dataset, bands: NewRaster['bands']): gdal.Dataset {
  dataset.flush();
  // The bindings cannot set a band's description; a VRT of our own making over the file can.
  const described = gdal.wrapVRT({
    bands: bands.map(({ description }, i) => ({ sources: [dataset.bands.get(i + 1)], description })),
  });
  const isMasked = maskOfAllBands(dataset) !== null;
  // A walk counts pixels that the mask leaves out.
  const statistics = isMasked ? [] : dataset.bands.map(keptStatistics);
  const path = dataset.description;
  dataset.close();
  const view = gdal.drivers.get('VRT').open(isMasked ? withMaskOf(path, described) : described);
  statistics.forEach((statistic, i) => statistic !== undefined && keepStatistics(view.bands.get(i + 1), statistic));
  bands.forEach(({ nodata }, i) => {
    if (nodata !== undefined) view.bands.get(i + 1).noDataValue = nodata;
  });
  return view;
}

/** The text of a VRT with the mask of a file. */
function withMaskOf(path: string, vrt: string): string {
  const escaped = path.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const source = `<SourceFilename relativeToVRT="0">${escaped}</SourceFilename><SourceBand>mask,1</SourceBand>`;
  const mask = `<MaskBand><VRTRasterBand dataType="Byte"><SimpleSource>${source}</SimpleSource></VRTRasterBand></MaskBand>`;
  return vrt.replace('</VRTDataset>', () => `${mask}</VRTDataset>`);
}
