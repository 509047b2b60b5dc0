import { readFileSync } from 'node:fs';

interface Directory {
  readonly at: number;
  readonly width: number;
  readonly height: number;
  readonly isTiled: boolean;
  readonly isMask: boolean;
  readonly firstTileAt: number;
}

/**
 * Defects of a file as a Cloud Optimized GeoTIFF, by the format's own rules (as rio-cogeo has them); empty if there are
 * none. Reads classic little-endian TIFF by hand.
 */
export function cogDefects(path: string): string[] {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1', 0, 4) !== 'II*\0') return ['is no classic little-endian TIFF'];
  const directories = readDirectories(bytes);
  const [full, ...overviews] = directories.filter(({ isMask }) => !isMask);
  if (!full) return ['has no image'];
  const defects: string[] = [];
  if (directories.some(({ isTiled }) => !isTiled)) defects.push('has an image that is not tiled');
  if (Math.max(full.width, full.height) > 512 && overviews.length === 0)
    defects.push('is over 512 pixels and has no overviews');
  overviews.forEach((overview, i) => {
    const larger = [full, ...overviews][i]!;
    if (overview.width >= larger.width || overview.height >= larger.height)
      defects.push(`overview ${i + 1} is not smaller than the one before`);
    if (overview.at < larger.at) defects.push(`directory of overview ${i + 1} comes before the one before`);
    if (overview.firstTileAt > larger.firstTileAt)
      defects.push(`tiles of overview ${i + 1} come after those of the larger image`);
  });
  const firstTile = Math.min(...directories.map(({ firstTileAt }) => firstTileAt));
  if (directories.some(({ at }) => at > firstTile)) defects.push('has a directory after the first tile');
  return defects;
}

function readDirectories(bytes: Buffer): Directory[] {
  const directories: Directory[] = [];
  for (let at = bytes.readUInt32LE(4); at !== 0;) {
    const count = bytes.readUInt16LE(at);
    const tags = new Map<number, number>();
    for (let i = 0; i < count; i++) {
      const entry = at + 2 + i * 12;
      const [type, values] = [bytes.readUInt16LE(entry + 2), bytes.readUInt32LE(entry + 4)];
      const inline = values * (type === 3 ? 2 : 4) <= 4;
      const place = inline ? entry + 8 : bytes.readUInt32LE(entry + 8);
      if (type === 3) tags.set(bytes.readUInt16LE(entry), bytes.readUInt16LE(place));
      if (type === 4) tags.set(bytes.readUInt16LE(entry), bytes.readUInt32LE(place));
    }
    directories.push({
      at,
      width: tags.get(256) ?? 0,
      height: tags.get(257) ?? 0,
      isTiled: tags.has(322),
      isMask: ((tags.get(254) ?? 0) & 4) !== 0,
      firstTileAt: tags.get(324) ?? tags.get(273) ?? 0,
    });
    at = bytes.readUInt32LE(at + 2 + count * 12);
  }
  return directories;
}
