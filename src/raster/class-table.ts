import type gdal from 'gdal-async';
import { metadataOf } from './metadata-of.ts';

/** One value of a class raster; `name` is empty where the file gives none. */
export interface RasterClass {
  readonly value: number;
  readonly name: string;
  readonly color: readonly [number, number, number];
}

const maxClasses = 256;

/** Colours that are told apart, for classes whose labels say nothing of a colour. */
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
  [/water|\bsea\b|river|lake|ocean/i, [44, 123, 182]],
  [/snow|\bice\b|glacier/i, [214, 236, 247]],
  [/cloud/i, [204, 208, 214]],
  [/shadow/i, [74, 78, 88]],
  [/urban|built|building|city|town|road/i, [196, 62, 58]],
  [/burn|fire/i, [110, 42, 30]],
  [/crop|field|farm/i, [228, 196, 82]],
  [/sparse|grass|shrub|meadow/i, [166, 206, 99]],
  [/dense|forest|tree|wood|vegetation/i, [35, 120, 57]],
  [/land|soil|bare|sand|ground|rock/i, [196, 168, 120]],
];
/** A class with such a label is not drawn: what lies below it shows. */
const nothing = /^(none|nothing|background|unclassified|no .+)$/i;
const neutral: RasterClass['color'] = [190, 190, 190];

/** False for a class that says that nothing was found, such as `none`. */
export const isDrawn = ({ name }: Pick<RasterClass, 'name'>): boolean => !nothing.test(name);

/** The name of a class in a legend. */
export const legendName = (name: string): string => (isDrawn({ name }) ? name : `${name} (not drawn)`);

/** Classes of a model, from 0, in the `colors` given, or else in those that their labels suggest. No two have one colour by their words. */
export function classesOfLabels(
  labels: readonly string[],
  colors: readonly RasterClass['color'][] | undefined,
): RasterClass[] {
  const taken = new Set<RasterClass['color']>();
  return labels.map((name, value) => {
    const [, ofWord] = wordColors.find(([word]) => word.test(name)) ?? [];
    const isFree = ofWord !== undefined && !taken.has(ofWord);
    if (isFree) taken.add(ofWord);
    const suggested = isFree ? ofWord : classColors[value % classColors.length]!;
    return { value, name, color: colors?.[value] ?? (isDrawn({ name }) ? suggested : neutral) };
  });
}

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
