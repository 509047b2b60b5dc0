import type { MultiPolygon, Polygon } from 'geojson';
import { realpathSync, statSync } from 'node:fs';
import { dirname, resolve, sep } from 'node:path';
import {
  extensionFault,
  geojsonGeometry,
  isPathSegment,
  isShallow,
  parseInstant,
  tooDeep,
} from '../../../contract/index.ts';
import { isRecord } from '../../../files/index.ts';
import { itemProperties } from '../item-properties.ts';
import type { ItemSource, NewItem } from '../items.ts';

/** A line that is no item that can be kept. */
export class ItemLineError extends Error {}

/**
 * Reads one STAC item (spec 2.3, or any other's). What the spec wants and the item does not have is filled
 * in; `assets.data.href` may name a raster beside the file of items. Throws `ItemLineError`.
 */
export function readItem(json: unknown, itemsPath: string, nowMs: number): NewItem {
  const item = requireObject(json, 'the line');
  const id = requireIdentifier(item['id'], 'id');
  const collectionId = requireIdentifier(item['collection'], 'collection');
  const given = requireObject(item['properties'], 'properties');
  const { datetime, ...rest } = { ...given };
  const written = datetime ?? given['start_datetime'];
  const at = typeof written === 'string' ? parseInstant(written) : null;
  if (at === null) throw new ItemLineError('properties.datetime must be an RFC 3339 timestamp');
  if (!isShallow(given)) throw new ItemLineError(`properties ${tooDeep}`);
  const fault = extensionFault(rest);
  if (fault) throw new ItemLineError(`${fault.path} ${fault.message}`);
  const description = textOf(rest['description']);
  const sourceType = textOf(rest['source_type']) || 'UNKNOWN';
  const more = { ...rest, description };
  return {
    id,
    collectionId,
    title: textOf(item['title']) || textOf(rest['title']) || id,
    datetimeMs: Math.floor(at),
    footprint: readFootprint(item['geometry']),
    properties: itemProperties({
      name: textOf(rest['name']) || id,
      description,
      layerType: 'RASTER',
      ingestedAtMs: nowMs,
      provider: 'import',
      sourceType,
      more,
    }),
    source: readSource(item['assets'], itemsPath),
  };
}

function readFootprint(json: unknown): Polygon | MultiPolygon {
  const read = geojsonGeometry.safeParse(json);
  if (!read.success) throw new ItemLineError(`geometry ${read.error.issues[0]?.message ?? 'is not valid'}`);
  if (read.data.type !== 'Polygon' && read.data.type !== 'MultiPolygon')
    throw new ItemLineError('geometry must be a Polygon or a MultiPolygon');
  return read.data;
}

/** A regular file in the folder of the items, or below it; anything else is left out: item files come from strangers too. */
function readSource(assets: unknown, itemsPath: string): ItemSource {
  const data = isRecord(assets) && isRecord(assets['data']) ? assets['data']['href'] : null;
  if (typeof data !== 'string' || data === '' || data.includes('\0') || /^[a-z][a-z0-9+.-]*:/i.test(data))
    return { kind: 'none' };
  try {
    const root = realpathSync(dirname(itemsPath));
    const path = realpathSync(resolve(root, data));
    if (!path.startsWith(root + sep) || !statSync(path).isFile()) return { kind: 'none' };
    return { kind: 'path', path, isRaster: /\.(tiff?|jp2|png|jpe?g|nc)$/i.test(path), grid: null };
  } catch {
    return { kind: 'none' };
  }
}

function requireObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw new ItemLineError(`${what} must be an object`);
  return value;
}

/** An identifier stands in the addresses of answers. */
function requireIdentifier(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '' || value.length > 512)
    throw new ItemLineError(`${what} must be a text of 1 to 512 characters`);
  if (!isPathSegment(value) || /\p{Cc}/u.test(value))
    throw new ItemLineError(`${what} cannot stand in an address: it must not be . or .., nor have control characters`);
  return value;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
