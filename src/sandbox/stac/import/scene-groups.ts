import { basename, dirname, extname } from 'node:path';
import { bandOfFileName } from '../../../raster/index.ts';

/** Rasters of one folder whose names differ in the band that they count: one scene, where their grids agree. */
export interface SceneGroup {
  /** Common part of the file names: `l8` of `l8_B4.tif`. */
  readonly stem: string;
  /** In the order of the bands. */
  readonly paths: readonly string[];
}

export interface GroupedRasters {
  readonly scenes: readonly SceneGroup[];
  /** Those that belong to no scene. */
  readonly single: readonly string[];
}

/** A file of one band alone is a raster like any other. */
const leastBands = 2;

/** The scenes among rasters, by their names alone. */
export function groupScenes(paths: readonly string[]): GroupedRasters {
  const groups = new Map<string, { stem: string; paths: string[] }>();
  for (const path of paths) {
    const stem = stemOf(path);
    if (stem === null) continue;
    const key = `${dirname(path)}\0${stem.toLowerCase()}`;
    const group = groups.get(key) ?? { stem, paths: [] };
    groups.set(key, group);
    group.paths.push(path);
  }
  const scenes = [...groups.values()].filter((group) => group.paths.length >= leastBands);
  const ofScenes = new Set(scenes.flatMap((scene) => scene.paths));
  return {
    scenes: scenes.map(({ stem, paths: own }) => ({ stem, paths: own.toSorted(byBand) })),
    single: paths.filter((path) => !ofScenes.has(path)),
  };
}

/** `B2` before `B10`, and what is no number last. */
function byBand(a: string, b: string): number {
  const number = (path: string) => Number.parseInt(bandOfFileName(basename(path))?.slice(1) ?? '', 10);
  const [first, second] = [number(a), number(b)];
  return (Number.isNaN(first) ? 1_000 : first) - (Number.isNaN(second) ? 1_000 : second) || a.localeCompare(b);
}

/** A file's name without its band and what comes after: null where it counts none. Sentinel-2 writes the resolution there, `..._B04_10m.jp2`. */
function stemOf(path: string): string | null {
  const name = basename(path, extname(path));
  const band = bandOfFileName(basename(path));
  // Sentinel-2's masks count bands too, and are none.
  if (band === null || /^MSK_/i.test(name)) return null;
  const at = name.toUpperCase().lastIndexOf(band);
  // USGS adds the product here: surface reflectance (SR) or surface temperature (ST).
  return name
    .slice(0, at)
    .replace(/[^A-Za-z0-9]+$/, '')
    .replace(/_(SR|ST)$/i, '');
}
