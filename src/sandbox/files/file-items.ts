import type { MultiPolygon, Polygon } from 'geojson';
import { parseInstant, positionsOf, readFileGeometry } from '../../contract/index.ts';
import type { Footprint } from '../../raster/footprint.ts';
import { boxOfPositions, footprintOfBox } from '../../raster/footprint.ts';
import type { FileRecord } from '../uploads/files.ts';
import type { FileFacts } from '../inspect/facts.ts';
import type { User } from '../identity/users.ts';
import { newId } from '../secrets.ts';
import { bandProperties, bandsOfFile } from '../stac/band-properties.ts';
import { itemProperties } from '../stac/item-properties.ts';
import { gridOf } from '../stac/raster-grid.ts';
import type { NewItem } from '../stac/items.ts';

/** The item of a file that was read (contract, "File endpoints"); null where neither it nor its uploader says a place. */
export function itemOfFile(
  file: FileRecord,
  facts: FileFacts,
  uploader: User,
  collectionId: string,
  nowMs: number,
): NewItem | null {
  const { vectorMappingProperties, layerProperties, geometry, acquisitionDate } = file.properties;
  const given = geometry === undefined ? null : footprintGiven(geometry);
  const footprint = given ?? facts.footprint;
  if (footprint === null) return null;
  const layerType = facts.kind === 'any' ? 'UNKNOWN' : facts.kind.toUpperCase();
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

/** A point or a line has no area: its box stands for it, at least some ten metres wide. @assumed footprint-hull: several polygons are one footprint, their hull: the spec shows Polygon (2.3), and several only across the antimeridian */
function footprintGiven(text: string): Footprint {
  const geometry = readFileGeometry(text);
  if (geometry.type === 'Polygon') return geometry;
  if (geometry.type === 'MultiPolygon') return crossesAntimeridian(geometry) ? geometry : onePolygon(geometry);
  const half = 5e-5;
  const [west, south, east, north] = boxOfPositions(positionsOf(geometry));
  return footprintOfBox([
    Math.max(-180, west - half),
    Math.max(-90, south - half),
    Math.min(180, east + half),
    Math.min(90, north + half),
  ]);
}

/** Its parts meet at 180 degrees: RFC 7946, 3.1.9, cuts it there. */
function crossesAntimeridian(geometry: MultiPolygon): boolean {
  const longitudes = positionsOf(geometry).map(([lon = 0]) => lon);
  return longitudes.includes(180) && longitudes.includes(-180);
}

/** The one, or the convex hull of several (Andrew's monotone chain), anticlockwise. */
function onePolygon({ coordinates }: MultiPolygon): Polygon {
  const [first = []] = coordinates;
  if (coordinates.length === 1) return { type: 'Polygon', coordinates: first };
  const corners = coordinates
    .flat(2)
    .map(([lon = 0, lat = 0]): [number, number] => [lon, lat])
    .sort(([x, y], [u, v]) => x - u || y - v);
  const half = (points: readonly [number, number][]) => {
    const chain: [number, number][] = [];
    for (const point of points) {
      while (!turnsLeft(chain.slice(-2), point)) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  const hull = [...half(corners), ...half(corners.toReversed())];
  return { type: 'Polygon', coordinates: [[...hull, ...hull.slice(0, 1)]] };
}

/** True where the way over two points goes on to the left; fewer are no way yet. */
const turnsLeft = ([a, b]: readonly (readonly [number, number])[], next: readonly [number, number]): boolean =>
  !a || !b || turn(a, b, next) > 0;

/** Above 0 where the way from `a` over `b` to `c` turns left. */
function turn(a: readonly [number, number], b: readonly [number, number], c: readonly [number, number]): number {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
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
