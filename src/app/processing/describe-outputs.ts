/** Only for child processes: loads GDAL. */
import { basename } from 'node:path';
import gdal from 'gdal-async';
import { isSignedByte } from '../../raster/band-reader.ts';
import { boxOf, footprintOf, footprintOfBox, type Footprint } from '../../raster/footprint.ts';
import { srsOfLayers } from '../../raster/layer-srs.ts';
import { toLonLatIfAny } from '../../raster/lon-lat.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { openVector } from '../../raster/open-vector.ts';
import { epsgOf, footprintOfRaster } from '../../raster/raster-place.ts';
import { readStatistics } from '../../raster/statistics.ts';
import type { MadeOutput } from './check-outputs.ts';
import { maxDescribedBands, type OutputDescription } from './output-description.ts';

/** Describes outputs for their STAC items. An output that cannot be described stays without, which is no fault of it. */
export function describeOutputs(made: readonly MadeOutput[]): OutputDescription[] {
  return made.flatMap(({ path, declared }) => {
    try {
      if (declared.kind === 'file') return [];
      return [declared.kind === 'vector' ? describeVector(path) : describeRaster(path)];
    } catch (error) {
      console.error(`${basename(path)} has no description: ${error instanceof Error ? error.message : String(error)}`);
      return [];
    }
  });
}

type Described = NonNullable<OutputDescription['raster']>;
type DataType = Described['bands'][number]['dataType'];

/** Without control characters. */
const plain = (text: string) => text.replace(/\p{Cc}/gu, ' ');

/** STAC's words for GDAL's. */
const dataTypes: Readonly<Record<string, DataType>> = {
  Byte: 'uint8',
  Int8: 'int8',
  UInt16: 'uint16',
  Int16: 'int16',
  UInt32: 'uint32',
  Int32: 'int32',
  UInt64: 'uint64',
  Int64: 'int64',
  Float32: 'float32',
  Float64: 'float64',
};

function describeRaster(path: string): OutputDescription {
  const dataset = openRaster(path);
  try {
    const { x, y } = dataset.rasterSize;
    const { geoTransform: t, srs } = dataset;
    return {
      fileName: basename(path),
      footprint: footprintOfRaster(dataset),
      raster: {
        epsg: epsgOf(srs),
        shape: [y, x],
        transform: t && srs ? [t[1] ?? 0, t[2] ?? 0, t[0] ?? 0, t[4] ?? 0, t[5] ?? 0, t[3] ?? 0] : null,
        bands: dataset.bands.map(describeBand).slice(0, maxDescribedBands),
      },
    };
  } finally {
    dataset.close();
  }
}

function describeBand(band: gdal.RasterBand): Described['bands'][number] {
  const { noDataValue, dataType, unitType, scale, offset } = band;
  const exact = readStatistics(band);
  return {
    name: plain(band.description || `band ${band.id}`).slice(0, 200),
    dataType: isSignedByte(band) ? 'int8' : (dataTypes[dataType ?? ''] ?? 'other'),
    nodata: Number.isNaN(noDataValue) ? 'nan' : Number.isFinite(noDataValue) ? noDataValue : null,
    unit:
      plain(unitType ?? '')
        .trim()
        .slice(0, 40) || null,
    scale: (scale ?? 1) === 1 && (offset ?? 0) === 0 ? null : { scale: scale ?? 1, offset: offset ?? 0 },
    statistics: exact && { minimum: exact.min, maximum: exact.max, mean: exact.mean, stddev: exact.stdDev },
  };
}

function describeVector(path: string): OutputDescription {
  const dataset = openVector(path);
  try {
    return { fileName: basename(path), footprint: footprintOfLayer(dataset.layers.get(0)), raster: null };
  } finally {
    dataset.close();
  }
}

/** The box of the features in longitude and latitude. Null without features, or without a place. */
function footprintOfLayer(layer: gdal.Layer): Footprint | null {
  const [srs] = srsOfLayers([layer]);
  if (!srs || layer.geomType === gdal.wkbNone || layer.features.count() === 0) return null;
  const { minX, minY, maxX, maxY } = layer.getExtent();
  const corners = [[minX, minY], [maxX, minY], [maxX, maxY], [minX, maxY]]; // oxfmt-ignore
  const lonLat = toLonLatIfAny(srs);
  const outline = lonLat && footprintOf(corners, lonLat);
  return outline && footprintOfBox(boxOf(outline));
}
