import { join } from 'node:path';
import { footprintOfBox, type Footprint } from '../../raster/footprint.ts';
import { notA, nowhere, type Inspector } from './facts.ts';
import { readEnds, readJson } from './read-ends.ts';
import { unpack } from '../../raster/unpack.ts';
import { isRecord } from '../../files/index.ts';

/** A 3D Tiles tileset (OGC 22-025): its JSON, alone or as `tileset.json` of a zip archive, the one nearest to its root. */
export const inspectTiles3d: Inspector = async ({ path, workFolder }) => {
  const { start } = await readEnds(path, 4);
  const isZip = start.toString('latin1') === 'PK\u0003\u0004';
  const tileset = await readJson(isZip ? await unpackTileset(path, workFolder) : path, '3D Tiles tileset');
  if (
    !isRecord(tileset) ||
    !isRecord(tileset['asset']) ||
    typeof tileset['asset']['version'] !== 'string' ||
    !isRecord(tileset['root'])
  ) {
    throw notA('3D Tiles tileset: it must have asset.version and root');
  }
  return {
    kind: 'tiles3d',
    mediaType: isZip ? 'application/zip' : 'application/json',
    ...nowhere,
    footprint: regionOf(tileset['root']),
  };
};

async function unpackTileset(path: string, workFolder: string): Promise<string> {
  const damaged = () => {
    throw notA('zip archive');
  };
  const tilesets: string[] = [];
  const note = (entry: string) => {
    if (/(^|\/)tileset\.json$/.test(entry)) tilesets.push(entry);
    return null;
  };
  await unpack(path, workFolder, note).catch(damaged);
  const [first, second] = tilesets.sort((a, b) => depth(a) - depth(b));
  if (first === undefined) throw notA('3D Tiles archive: there is no tileset.json in it');
  if (second !== undefined && depth(second) === depth(first))
    throw notA(`3D Tiles archive: ${first} and ${second} lie side by side, and one tileset is wanted`);
  const name = 'unpacked-tileset.json';
  await unpack(path, workFolder, (entry) => (entry === first ? name : null)).catch(damaged);
  return join(workFolder, name);
}

const depth = (entry: string) => entry.split('/').length;

/** A bounding region is [west, south, east, north, lowest, highest], in radians. */
function regionOf(root: Record<string, unknown>): Footprint | null {
  const volume = root['boundingVolume'];
  const region = isRecord(volume) ? volume['region'] : undefined;
  if (!Array.isArray(region) || region.length !== 6 || !region.every((value) => typeof value === 'number')) return null;
  const [west = 0, south = 0, east = 0, north = 0] = region.map((radians) => (radians * 180) / Math.PI);
  const isRegion = Math.max(Math.abs(west), Math.abs(east)) <= 180 && south >= -90 && north <= 90 && south <= north;
  return isRegion ? footprintOfBox([west, south, east, north]) : null;
}
