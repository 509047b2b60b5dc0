// Makes templates/shared/map/natural-earth.pmtiles of an MBTiles file; see the README beside it. Not part of any set-up.
import { writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
// Not a dependency: see the README.
import { BufferWriter, S2PMTilesWriter, TileType } from 's2-pmtiles';

const [from, to] = process.argv.slice(2);
const tiles = new Database(from, { readonly: true });
const bytes = new BufferWriter();
const archive = new S2PMTilesWriter(bytes, TileType.Pbf);
// GDAL also writes tiles beyond the poles.
const rows = tiles.prepare(
  'select zoom_level as z, tile_column as x, tile_row as y, tile_data as data from tiles where tile_row >= 0 and tile_column >= 0 and tile_row < (1 << zoom_level) and tile_column < (1 << zoom_level)',
);
for (const { z, x, y, data } of rows.iterate()) await archive.writeTileXYZ(z, x, 2 ** z - 1 - y, gunzipSync(data));
await archive.commit({ name: 'Natural Earth 1:10m', attribution: 'Natural Earth' });
const file = Buffer.from(bytes.commit());
// The writer leaves out where the tiles lie: west, south, east, north and the centre, in 10^-7 degrees.
[-180, -85.05, 180, 85.05].forEach((degrees, i) => file.writeInt32LE(Math.round(degrees * 1e7), 102 + 4 * i));
writeFileSync(to, file);
