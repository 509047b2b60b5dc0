import { extname, join } from 'node:path';
import gdal from 'gdal-async';
import type { SourceType } from '../../contract/index.ts';
import { boxOf, footprintOf, footprintOfBox, type Box, type Footprint } from '../../raster/footprint.ts';
import { isInDegrees } from '../../raster/affine.ts';
import { srsOfLayers } from '../../raster/layer-srs.ts';
import { toLonLat } from '../../raster/lon-lat.ts';
import { notA, nowhere, type Found, type Inspector } from './facts.ts';
import { readEnds } from './read-ends.ts';
import { unpack } from '../../raster/unpack.ts';

/** Drivers that read the one file they are given, and its media type. */
const drivers: Readonly<Record<string, string>> = {
  GeoJSON: 'application/geo+json',
  GPKG: 'application/geopackage+sqlite3',
  FlatGeobuf: 'application/flatgeobuf',
  KML: 'application/vnd.google-earth.kml+xml',
  GML: 'application/gml+xml',
  CSV: 'text/csv',
};

const csvColumns = [
  'X_POSSIBLE_NAMES=lon*,lng,x,easting',
  'Y_POSSIBLE_NAMES=lat*,y,northing',
  'GEOM_POSSIBLE_NAMES=wkt,geom*,the_geom',
  'KEEP_GEOM_COLUMNS=NO',
];

/** @assumed csv-degrees: columns of these names are in degrees of WGS84, for a CSV file names no reference system */
const degreeColumns = [/^(lon|lng|long|longitude)$/i, /^lat(itude)?$/i, /^(wkt|geom|geometry|the_geom)$/i] as const;

async function saysDegrees(path: string): Promise<boolean> {
  const { start } = await readEnds(path, 64 * 1024);
  const [header = ''] = start
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/, 1);
  const columns = header.split(/[,;\t|]/).map((name) => name.trim().replace(/^"|"$/g, ''));
  const [lon, lat, wkt] = degreeColumns.map((pattern) => columns.some((name) => pattern.test(name)));
  return wkt === true || (lon === true && lat === true);
}

const areDegrees = (west: number, south: number, east: number, north: number) =>
  west >= -180 && east <= 180 && south >= -90 && north <= 90;

/** Geometry types that a source type allows; other source types allow all. */
const geometries: Partial<Record<SourceType, RegExp>> = {
  POINT: /^(Multi)?Point$/,
  LINESTRING: /^(Multi)?(LineString|Curve)$|^(Circular|Compound)/,
  POLYGON: /^((Multi)?Polygon|CurvePolygon|MultiSurface)$/,
};

/** Number of features that are read one by one. */
const checkedFeatures = 100_000;

/** Opens the file through a vector driver of OGR; a zip archive holds a shapefile, a KMZ a KML. */
export const inspectVector: Inspector = async ({ path, workFolder, sourceType }) => {
  const { start } = await readEnds(path, 4);
  if (start.toString('latin1') === 'PK\u0003\u0004') return inspectArchive(path, workFolder, sourceType);
  for (const [name, mediaType] of Object.entries(drivers)) {
    const dataset = tryDriver(name, path);
    if (!dataset) continue;
    const isDegrees = name === 'CSV' && (await saysDegrees(path));
    return inspectDataset(dataset, sourceType, mediaType, isDegrees);
  }
  throw notA(`vector file (${Object.keys(drivers).join(', ')}, a zipped shapefile or a KMZ)`);
};

async function inspectArchive(path: string, workFolder: string, sourceType: SourceType): Promise<Found> {
  const names = await unpack(path, workFolder, (entry) => {
    const extension = extname(entry).toLowerCase();
    return ['.shp', '.shx', '.dbf', '.prj', '.cpg', '.kml'].includes(extension) ? `unpacked${extension}` : null;
  }).catch(() => {
    throw notA('zip archive with one shapefile, or KMZ');
  });
  const dataset = names.includes('unpacked.shp')
    ? tryDriver('ESRI Shapefile', join(workFolder, 'unpacked.shp'))
    : names.includes('unpacked.kml')
      ? tryDriver('KML', join(workFolder, 'unpacked.kml'))
      : null;
  if (!dataset) throw notA('zipped shapefile or KMZ');
  return inspectDataset(dataset, sourceType, 'application/zip');
}

function tryDriver(name: string, path: string): gdal.Dataset | null {
  // No schema is fetched, no reference followed, nothing written beside the file.
  for (const [option, value] of [
    ['GML_DOWNLOAD_WFS_SCHEMA', 'NO'],
    ['GML_SKIP_RESOLVE_ELEMS', 'ALL'],
    ['GML_SAVE_RESOLVED_TO', 'NO'],
  ] as const)
    gdal.config.set(option, value);
  try {
    const dataset = gdal.drivers.get(name).open(path, 'r', name === 'CSV' ? csvColumns : []);
    if (dataset.layers.count() > 0) return dataset;
    dataset.close();
  } catch {
    // Not this driver's.
  }
  return null;
}

function inspectDataset(dataset: gdal.Dataset, sourceType: SourceType, mediaType: string, isDegrees = false): Found {
  try {
    const wanted = geometries[sourceType];
    const layers = dataset.layers.map((layer) => ({
      name: layer.name,
      features: countFeatures(layer, wanted, sourceType),
    }));
    return {
      kind: 'vector',
      mediaType,
      ...nowhere,
      footprint: footprint(dataset, isDegrees),
      vector: { driver: dataset.driver.description, layers },
    };
  } finally {
    dataset.close();
  }
}

/** Reads the features: one that cannot be read, or is not what the source type claims, is a fault of the file. */
function countFeatures(layer: gdal.Layer, wanted: RegExp | undefined, sourceType: SourceType): number {
  let count = 0;
  try {
    for (
      let feature = layer.features.first();
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- gdal-async's type lacks the null after the last one
      feature !== null && count < checkedFeatures;
      feature = layer.features.next()
    ) {
      count += 1;
      const type = feature.getGeometry()?.name;
      if (wanted && (type === undefined || !wanted.test(toCamelCase(type))))
        throw notA(`${sourceType}: there is a ${type ?? 'feature without a geometry'} in it`);
    }
  } catch (error) {
    throw error instanceof Error && error.name === 'KitError'
      ? error
      : notA('whole vector file: its features cannot be read');
  }
  return count < checkedFeatures ? count : layer.features.count(true);
}

/** GDAL writes MULTIPOINT, OGC MultiPoint. */
function toCamelCase(name: string): string {
  const known = [
    'Point',
    'MultiPoint',
    'LineString',
    'MultiLineString',
    'MultiCurve',
    'CircularString',
    'CompoundCurve',
    'Polygon',
    'MultiPolygon',
    'CurvePolygon',
    'MultiSurface',
  ];
  return known.find((driver) => driver.toUpperCase() === name.toUpperCase()) ?? name;
}

/** Box round all layers; null where none has features with a place. `isDegrees`: where they name no reference system. */
function footprint(dataset: gdal.Dataset, isDegrees: boolean): Footprint | null {
  const layers = dataset.layers.map((layer) => layer);
  const systems = srsOfLayers(layers);
  const boxes = layers.map((layer, i): Box | null => {
    if (layer.features.count(true) === 0) return null;
    const srs = systems[i];
    if (!srs && !isDegrees) return null;
    const extent = extentOf(layer);
    if (extent === null) return null;
    const { minX, minY, maxX, maxY } = extent;
    if (![minX, minY, maxX, maxY].every(Number.isFinite)) return null;
    if (!srs) return areDegrees(minX, minY, maxX, maxY) ? [minX, minY, maxX, maxY] : null;
    const corners = [
      [minX, minY],
      [maxX, minY],
      [maxX, maxY],
      [minX, maxY],
    ];
    const outline = footprintOf(corners, isInDegrees(srs) ? (x, y) => [x, y] : toLonLat(srs));
    return outline && boxOf(outline);
  });
  const known = boxes.filter((box) => box !== null);
  const [first] = known;
  if (!first) return null;
  if (known.length === 1) return footprintOfBox(grown(first));
  const edge = (i: number) => (i < 2 ? Math.min : Math.max)(...known.map((box) => box[i] ?? 0));
  return footprintOfBox(grown([edge(0), edge(1), edge(2), edge(3)]));
}

/** Null where no feature has a place. */
function extentOf(layer: gdal.Layer): gdal.Envelope | null {
  try {
    return layer.getExtent(true);
  } catch {
    return null;
  }
}

/** A single point has no area: a footprint of about ten metres stands for it. */
function grown([west, south, east, north]: Box): Box {
  const half = 5e-5;
  const isFlatX = west === east;
  const isFlatY = south === north;
  const within = (value: number, limit: number) => Math.max(-limit, Math.min(limit, value));
  return [
    within(isFlatX ? west - half : west, 180),
    within(isFlatY ? south - half : south, 90),
    within(isFlatX ? east + half : east, 180),
    within(isFlatY ? north + half : north, 90),
  ];
}
