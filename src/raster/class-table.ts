import type gdal from 'gdal-async';
import { metadataOf } from './metadata-of.ts';

/** One value of a class raster; `name` is empty where the file gives none. */
export interface RasterClass {
  readonly value: number;
  readonly name: string;
  readonly color: readonly [number, number, number];
  /** True for a class that maps do not draw, such as `none` of a model. Default: false. */
  readonly isHidden?: boolean;
}

const maxClasses = 256;

/** Metadata of a file with the values of the classes that maps do not draw. */
export const hiddenClasses = 'CLASSES_NOT_DRAWN';

/** Distinct colours for classes whose labels suggest none. */
const classColors: readonly (readonly [number, number, number])[] = [
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

/** Colours that maps of land cover give to words. The first match counts. */
const wordColors: readonly (readonly [RegExp, RasterClass['color']])[] = [
  [/\b(water|seas?|rivers?|lakes?|oceans?)\b/i, [44, 123, 182]],
  [/\b(wetlands?|marsh|mangroves?)\b/i, [80, 160, 150]],
  [/\b(snow|ice|glaciers?)\b/i, [214, 236, 247]],
  [/\b(shadows?)\b/i, [74, 78, 88]],
  [/\b(clouds?)\b/i, [204, 208, 214]],
  [/\b(urban|built|built-up|buildings?|city|town|roads?)\b/i, [196, 62, 58]],
  [/\b(burnt|burned|fire)\b/i, [110, 42, 30]],
  [/\b(crops?|cropland|fields?|farmland)\b/i, [228, 196, 82]],
  [/\b(sparse|grass|grassland|shrubs?|shrubland|meadows?)\b/i, [166, 206, 99]],
  [/\b(dense|forests?|trees?|woods?|woodland|vegetation)\b/i, [35, 120, 57]],
  [/\b(land|soil|bare|sand|ground|rock)\b/i, [196, 168, 120]],
];
/** A label that denies a word does not have its colour. */
const negation = /\b(no|non|not|without)\b/i;
const nothing = /^(none|nothing|background|unclassified)$/i;
const neutral: RasterClass['color'] = [190, 190, 190];
/** Least difference of two colours that can be told apart, over the three channels. */
const leastDifference = 100;

const differenceOf = (one: RasterClass['color'], other: RasterClass['color']): number =>
  one.reduce((sum, channel, i) => sum + Math.abs(channel - other[i]!), 0);

/** The name of a class in a legend. */
export const legendName = ({ name, isHidden }: Pick<RasterClass, 'name' | 'isHidden'>): string =>
  isHidden ? `${name} (not drawn)` : name;

/**
 * Classes of a model, from 0, in the `colors` given. Default: in the colours that their labels suggest, each its own, and a
 * class such as `none` is not drawn.
 */
export function classesOfLabels(
  labels: readonly string[],
  colors: readonly RasterClass['color'][] | undefined,
): RasterClass[] {
  if (colors) return labels.map((name, value) => ({ value, name, color: colors[value] ?? neutral }));
  const taken: RasterClass['color'][] = [];
  const take = (color: RasterClass['color'] | undefined) => {
    if (color) taken.push(color);
    return color;
  };
  const byWord = labels.map((name) => {
    if (nothing.test(name)) return neutral;
    const [, color] = (negation.test(name) ? undefined : wordColors.find(([word]) => word.test(name))) ?? [];
    return color && !taken.includes(color) ? take(color) : undefined;
  });
  return labels.map((name, value) => {
    const free = classColors.find((color) => taken.every((other) => differenceOf(color, other) >= leastDifference));
    const color = byWord[value] ?? take(free) ?? classColors[value % classColors.length]!;
    return { value, name, color, ...(nothing.test(name) && { isHidden: true }) };
  });
}

/** True if a band has a colour table. The binding returns undefined for a band without one, against its type. */
export const hasColorTable = (band: gdal.RasterBand): boolean => Boolean(band.colorTable);

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
  const hidden = new Set((metadata[hiddenClasses] ?? '').split(' ').filter(Boolean).map(Number));
  const classes: RasterClass[] = [];
  for (let value = 0; value < Math.min(table.count(), maxClasses); value++) {
    const { c1, c2, c3, c4 } = table.get(value);
    // GDAL fills a table up to its end with black, and marks nodata by no opacity.
    if (c4 === 0 || (names.length > 0 && value >= names.length)) continue;
    classes.push({
      value,
      name: names[value] ?? '',
      color: [c1, c2, c3],
      ...(hidden.has(value) && { isHidden: true }),
    });
  }
  return classes;
}
