import { parseInstant, positionsOf, wktGeometry } from '../../contract/index.ts';
import type { Footprint } from '../../raster/footprint.ts';
import { boxOfPositions, footprintOfBox } from '../../raster/footprint.ts';
import type { FileRecord } from '../files/files.ts';
import type { FileFacts } from '../files/inspect/facts.ts';
import type { User } from '../identity/users.ts';
import { newId } from '../secrets.ts';
import { bandProperties, bandsOfFile } from './band-properties.ts';
import { itemProperties } from './item-properties.ts';
import type { NewItem, RasterGrid } from './items.ts';

/** The item of a file that was read (contract, "File endpoints"); null where neither it nor its uploader says a place. */
export function itemOfFile(
  file: FileRecord,
  facts: FileFacts,
  uploader: User,
  collectionId: string,
  nowMs: number,
): NewItem | null {
  const { vectorMappingProperties, layerProperties, geometry, acquisitionDate } = file.properties;
  const given = geometry === undefined ? null : footprintOfWkt(geometry);
  const footprint = given ?? facts.footprint;
  if (footprint === null) return null;
  const layerType = facts.kind.toUpperCase();
  return {
    id: newId('item'),
    collectionId,
    title: file.id,
    datetimeMs: instantOf(acquisitionDate) ?? instantOf(facts.acquiredAt ?? undefined) ?? file.createdAtMs,
    footprint,
    properties: itemProperties({
      name: file.originalName,
      description: describe(facts),
      layerType,
      ingestedAtMs: nowMs,
      provider: uploader.organization || uploader.name,
      sourceType: file.sourceType,
      more: {
        ...(facts.raster
          ? bandProperties(bandsOfFile(file.originalName, facts.raster), [facts.raster.height, facts.raster.width])
          : {}),
        ...defined({ vectorMappingProperties, layerProperties }),
      },
    }),
    source: {
      kind: 'file',
      fileId: file.id,
      blob: file.blob,
      fileName: file.originalName,
      isRaster: facts.kind === 'raster',
      hasOverviews: facts.raster?.builtOverviews === true,
      isClipped: given !== null,
      grid: gridOf(facts),
    },
    fileId: file.id,
  };
}

/** Null where the file is no raster, or its CRS has no EPSG code. */
export function gridOf({ raster }: FileFacts): RasterGrid | null {
  if (!raster?.geoTransform || raster.epsg === null) return null;
  const [x = 0, xByColumn = 0, xByRow = 0, y = 0, yByColumn = 0, yByRow = 0] = raster.geoTransform;
  return {
    epsg: raster.epsg,
    shape: [raster.height, raster.width],
    transform: [xByColumn, xByRow, x, yByColumn, yByRow, y],
  };
}

/** A point or a line has no area: its box stands for it, at least some ten metres wide. */
function footprintOfWkt(wkt: string): Footprint {
  const geometry = wktGeometry.parse(wkt);
  if (geometry.type === 'Polygon' || geometry.type === 'MultiPolygon') return geometry;
  const half = 5e-5;
  const [west, south, east, north] = boxOfPositions(positionsOf(geometry));
  return footprintOfBox([
    Math.max(-180, west - half),
    Math.max(-90, south - half),
    Math.min(180, east + half),
    Math.min(90, north + half),
  ]);
}

/** A date alone is its first instant in UTC. */
function instantOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const ms = parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  return ms === null ? null : Math.floor(ms);
}

function describe(facts: FileFacts): string {
  if (facts.raster)
    return `${facts.raster.width} x ${facts.raster.height} pixels, ${facts.raster.bands.length} band(s), ${facts.raster.driver}`;
  if (facts.vector)
    return `${facts.vector.layers.reduce((sum, layer) => sum + layer.features, 0)} feature(s), ${facts.vector.driver}`;
  return facts.mediaType;
}

function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
