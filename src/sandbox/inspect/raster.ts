import { basename } from 'node:path';
import gdal from 'gdal-async';
import { openRaster, RasterError } from '../../raster/open-raster.ts';
import { epsgOf, footprintOfRaster } from '../../raster/raster-place.ts';
import { colorName } from '../../raster/scene.ts';
import { notA, type BandFacts, type Inspector } from './facts.ts';
import { metadataOf } from '../../raster/metadata-of.ts';

const mediaTypes: Readonly<Record<string, string>> = {
  GTiff: 'image/tiff',
  JP2OpenJPEG: 'image/jp2',
  PNG: 'image/png',
  JPEG: 'image/jpeg',
  netCDF: 'application/x-netcdf',
  NITF: 'application/vnd.nitf',
};

/** Larger rasters without overviews get some, so that a preview need not read every pixel. */
const overviewsFrom = 4096;
const coarsestSide = 256;
/** The finer ones would take more room than they save time. */
const finestOverview = 8;
/** Building reads every pixel of every band: a file that claims more goes without, and its previews cost what they cost. */
const overviewPixelBudget = 2_000_000_000;

export const inspectRaster: Inspector = ({ path, sourceType, buildOverviews: wanted = true }) => {
  const dataset = open(path, sourceType);
  try {
    const bands = dataset.bands.map((band): BandFacts => {
      const { min, max, mean, std_dev: stdDev } = statistics(band);
      return {
        description: band.description.slice(0, 200),
        color: colorName(band),
        dataType: band.dataType ?? 'unknown',
        nodata: band.noDataValue,
        min,
        max,
        mean,
        stdDev,
      };
    });
    const { x: width, y: height } = dataset.rasterSize;
    const driver = dataset.driver.description;
    const crs = dataset.srs?.toWKT() ?? null;
    return {
      kind: 'raster',
      mediaType: mediaTypes[driver] ?? 'application/octet-stream',
      footprint: footprintOfRaster(dataset),
      acquiredAt: acquiredAt(dataset),
      raster: {
        driver,
        width,
        height,
        crs,
        epsg: epsgOf(dataset.srs),
        geoTransform: dataset.geoTransform,
        bands,
        builtOverviews: wanted && buildOverviews(dataset),
      },
    };
  } finally {
    dataset.close();
  }
};

function open(path: string, sourceType: string): gdal.Dataset {
  try {
    return sourceType === 'NETCDF' ? openRaster(path, ['netCDF']) : openRaster(path);
  } catch (error) {
    if (error instanceof RasterError) throw error;
    throw notA(`raster (${basename(path)})`);
  }
}

/** Reads pixels: a raster whose header is whole and whose pixels are cut off is found out here. */
function statistics(band: gdal.RasterBand): gdal.stats {
  const { x, y } = band.size;
  try {
    // For complex numbers, this reads the real part: the bindings have no array for them.
    band.pixels.read(x - 1, y - 1, 1, 1, new Float64Array(1));
    return band.computeStatistics(true);
  } catch (error) {
    // GDAL's own word for a band that is all nodata, which is no fault.
    if (error instanceof Error && /no valid pixels/i.test(error.message))
      return { min: NaN, max: NaN, mean: NaN, std_dev: NaN };
    throw notA('whole raster: GDAL cannot read its pixels');
  }
}

/** TIFF's own tag, `YYYY:MM:DD HH:MM:SS`, or what GDAL's readers of satellite products write. */
function acquiredAt(dataset: gdal.Dataset): string | null {
  const metadata = {
    ...metadataOf(dataset),
    ...metadataOf(dataset, 'IMAGERY'),
  };
  const written =
    metadata['ACQUISITIONDATETIME'] ?? metadata['TIFFTAG_DATETIME']?.replace(/^(\d{4}):(\d\d):(\d\d)/, '$1-$2-$3');
  const time = Date.parse(`${written?.trim().replace(' ', 'T').replace(/Z?$/, 'Z')}`);
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}

function buildOverviews(dataset: gdal.Dataset): boolean {
  const { x, y } = dataset.rasterSize;
  const side = Math.max(x, y);
  if (x * y * dataset.bands.count() > overviewPixelBudget) return false;
  if (side <= overviewsFrom || dataset.driver.description !== 'GTiff' || dataset.bands.get(1).overviews.count() > 0)
    return false;
  const levels: number[] = [];
  for (let level = finestOverview; side / level > coarsestSide / 2; level *= 2) levels.push(level);
  gdal.config.set('COMPRESS_OVERVIEW', 'DEFLATE');
  gdal.config.set('BIGTIFF_OVERVIEW', 'IF_SAFER');
  dataset.buildOverviews('AVERAGE', levels);
  return true;
}
