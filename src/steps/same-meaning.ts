/** Bands that a step compares or merges must mean the same, by unit and by classes. */
import type Gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import { classesOf, type RasterClass } from '../raster/class-table.ts';
import type { SceneBand } from '../raster/scene.ts';
import { unitOf } from '../raster/units.ts';

const stripPixels = 500_000;

const nameOf = (band: SceneBand) => band.place ?? band.fileName;

/**
 * Throws `KitError` if two bands state different units (`units_differ`), or if a class that occurs in the second has another colour or name in the first
 * (`classes_differ`). A band without a unit or a colour table fits every other.
 */
export function requireSameMeaning(first: SceneBand, second: SceneBand): void {
  const [unit, other] = [unitOf(first.band), unitOf(second.band)];
  if (unit !== '' && other !== '' && unit !== other)
    throw new KitError(
      'units_differ',
      `${nameOf(first)} is in ${first.band.unitType} and ${nameOf(second)} in ${second.band.unitType}; convert them to one unit first`,
      { status: 422 },
    );
  const [known, others] = [classesOf(first.band), classesOf(second.band)];
  if (!known || !others) return;
  const ofFirst = new Map(known.map((rasterClass) => [rasterClass.value, rasterClass]));
  const { noDataValue } = second.band;
  const different = others.filter(
    (rasterClass) => rasterClass.value !== noDataValue && !isSameClass(ofFirst.get(rasterClass.value), rasterClass),
  );
  if (different.length === 0) return;
  const found = valuesOf(second.band);
  const conflicting = different.find(({ value }) => found.has(value));
  if (conflicting)
    throw new KitError(
      'classes_differ',
      `class ${conflicting.value} has another colour or name in ${nameOf(second)} than in ${nameOf(first)}; give the rasters one table of classes first`,
      { status: 422 },
    );
}

/** Names decide if both have them, else colours. */
const isSameClass = (first: RasterClass | undefined, other: RasterClass): boolean =>
  first !== undefined &&
  (first.name !== '' && other.name !== '' ? first.name === other.name : String(first.color) === String(other.color));

/** The values that occur in a band of at most 65,536 values. */
function valuesOf(band: Gdal.RasterBand): ReadonlySet<number> {
  const { x: width, y: height } = band.size;
  const rows = Math.max(1, Math.floor(stripPixels / width));
  const values = new Uint16Array(width * rows);
  const isFound = new Uint8Array(65_536);
  for (let y = 0; y < height; y += rows) {
    const count = width * Math.min(rows, height - y);
    band.pixels.read(0, y, width, count / width, values);
    for (let i = 0; i < count; i++) isFound[values[i]!] = 1;
  }
  return new Set([...isFound.keys()].filter((value) => isFound[value] === 1));
}
