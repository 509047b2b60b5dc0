import type gdal from 'gdal-async';
import { metadataOf } from './metadata-of.ts';

/** One value of a class raster; `name` is empty where the file gives none. */
export interface RasterClass {
  readonly value: number;
  readonly name: string;
  readonly color: readonly [number, number, number];
}

const maxClasses = 256;

/** Colours that are told apart, for classes that have none of their own. */
export const classColors: readonly (readonly [number, number, number])[] = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [204, 121, 167],
  [240, 228, 66],
  [213, 94, 0],
  [86, 180, 233],
  [120, 94, 60],
  [150, 150, 150],
  [100, 60, 160],
];

/** The classes of a band, by its colour table, and by its category names or the file's metadata `CLASS_<value>`; null where it has no table. */
export function classesOf(band: gdal.RasterBand): RasterClass[] | null {
  const table = band.colorTable;
  if (!table) return null;
  const metadata = metadataOf(band.ds);
  const given = band.categoryNames.map((name) => name);
  const described = Object.keys(metadata)
    .flatMap((name) => /^CLASS_(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number);
  const names =
    given.length > 0
      ? given
      : Array.from(
          { length: Math.min(maxClasses, Math.max(-1, ...described) + 1) },
          (_, value) => metadata[`CLASS_${value}`] ?? '',
        );
  const classes: RasterClass[] = [];
  for (let value = 0; value < Math.min(table.count(), maxClasses); value++) {
    const { c1, c2, c3, c4 } = table.get(value);
    // GDAL fills a table up to its end with black, and marks nodata by no opacity.
    if (c4 === 0 || (names.length > 0 && value >= names.length)) continue;
    classes.push({ value, name: names[value] ?? '', color: [c1, c2, c3] });
  }
  return classes;
}
