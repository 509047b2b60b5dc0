/** Only for child processes: loads GDAL. */
import { basename, parse } from 'node:path';
import type gdal from 'gdal-async';
import { bandNames, statedSensor } from './band-names.ts';
import { alphaOf, type ItemBand, type ItemFacts } from './band-reader.ts';
import { observedAtOf } from './observed-at.ts';
import { isSameTransform, matchBand, SceneError, type NamedBand } from './match-band.ts';
import { requireOneMarker, requireOnePage } from './whole-raster.ts';
import { openRaster } from './open-raster.ts';

export { SceneError } from './match-band.ts';

export interface SceneBand extends NamedBand {
  readonly fileName: string;
  /** From 1. */
  readonly index: number;
  readonly dataset: gdal.Dataset;
  readonly band: gdal.RasterBand;
  /** True if its common name is that of Landsat 8, because no file name states the sensor. Default: false. */
  readonly isOfAssumedSensor?: boolean;
  /** Null if there is no catalog item, or the item does not describe the band. */
  readonly ofItem: ItemBand | null;
}

/** The rasters of one run's input, opened through the allowlist. */
export interface Scene {
  readonly datasets: readonly gdal.Dataset[];
  readonly bands: readonly SceneBand[];
  /** The band by common name (`red`), name (`B4`), description, file name without extension, or number in a single file; case does not matter. */
  findBand(name: string): SceneBand;
  /** Acquisition time of a raster in ms since 1970, from its catalog item or else from the file's metadata. Null if neither has one. */
  observedAt(dataset: gdal.Dataset): number | null;
  /** The one raster of the input; an error where it has several. */
  onlyRaster(): gdal.Dataset;
  close(): void;
}

/** Opens `paths` (absolute, already resolved). `ofItems` has the metadata of the files from their catalog items, one entry per path. Default: none. */
export function openScene(paths: readonly string[], ofItems: readonly ItemFacts[] = []): Scene {
  const datasets: gdal.Dataset[] = [];
  try {
    for (const path of paths) {
      const dataset = openRaster(path);
      datasets.push(dataset);
      requireOnePage(dataset, basename(path));
      requireOneMarker(dataset, basename(path));
    }
  } catch (error) {
    datasets.forEach((dataset) => dataset.close());
    throw error;
  }
  const fileNames = paths.map((path) => basename(path));
  const namesOfFiles = bandNames(fileNames);
  const isAssumed = statedSensor(fileNames) === null;
  const bands = datasets.flatMap((dataset, file) =>
    dataset.bands.map((band): SceneBand => {
      const index = band.id ?? 1;
      const own = dataset.bands.count() === 1 ? (namesOfFiles[file] ?? []) : [];
      const stem = dataset.bands.count() === 1 ? parse(fileNames[file] ?? '').name : '';
      const names = [
        band.description,
        ...own.toReversed(),
        colorName(band),
        alphaOf(dataset)?.id === index ? 'alpha' : '',
        stem,
        datasets.length === 1 ? String(index) : '',
      ];
      const known = [...new Set(names.filter((name) => name !== ''))];
      return {
        fileName: fileNames[file] ?? '',
        place: `${fileNames[file] ?? ''}, band ${index}`,
        index,
        names: known,
        dataset,
        band,
        ...(isAssumed && own.length > 1 && band.description === '' && { isOfAssumedSensor: true }),
        ofItem: itemBandOf(known, index, dataset.bands.count(), ofItems[file]?.bands ?? []),
      };
    }),
  );

  return {
    datasets,
    bands,
    findBand: (name) => matchBand(bands, name),
    observedAt: (dataset) => observedAtOf(dataset, ofItems[datasets.indexOf(dataset)]?.observedAt ?? null),
    onlyRaster() {
      if (datasets.length !== 1 || !datasets[0]) {
        throw new SceneError(
          'not_one_raster',
          `the step takes one raster file, the input has ${datasets.length}: ${fileNames.join(', ')}`,
          { fileNames },
        );
      }
      return datasets[0];
    },
    close: () => datasets.forEach((dataset) => dataset.close()),
  };
}

/** Finds the item metadata of a band by name, or by position if the file has as many bands as the item. */
function itemBandOf(
  names: readonly string[],
  index: number,
  count: number,
  ofItem: readonly ItemBand[],
): ItemBand | null {
  const wanted = new Set(names.filter((name) => !/^\d+$/.test(name)).map((name) => name.toLowerCase()));
  const found = ofItem.filter((itemBand) => itemBand.names.some((name) => wanted.has(name.toLowerCase())));
  return found.length === 1 ? found[0]! : count === ofItem.length ? (ofItem[index - 1] ?? null) : null;
}

/** `red`, `green` or `blue`, where the band says that it is that; else empty. */
export function colorName(band: gdal.RasterBand): string {
  const color = (band.colorInterpretation ?? '').toLowerCase();
  return ['red', 'green', 'blue'].includes(color) ? color : '';
}

/** Throws where two bands do not lie on the same pixels: size, geotransform or CRS. */
export function requireSameGrid(a: SceneBand, b: SceneBand): void {
  const size = (s: SceneBand) => `${s.dataset.rasterSize.x} x ${s.dataset.rasterSize.y}`;
  const transform = (s: SceneBand) => s.dataset.geoTransform;
  const name = (s: SceneBand) => `${s.fileName} band ${s.index}`;
  const fail = (what: string, ofA: unknown, ofB: unknown) => {
    throw new SceneError(
      'grids_differ',
      `${name(a)} and ${name(b)} are on different grids: ${what} ${String(ofA)} and ${String(ofB)}; resample one of them first`,
      {},
    );
  };
  if (size(a) !== size(b)) fail('size', size(a), size(b));
  const [ta, tb] = [transform(a), transform(b)];
  const { x: width, y: height } = a.dataset.rasterSize;
  if ((ta === null) !== (tb === null) || (ta && tb && !isSameTransform(ta, tb, { width, height })))
    fail('geotransform', ta, tb);
  const [sa, sb] = [a.dataset.srs, b.dataset.srs];
  if ((sa === null) !== (sb === null) || (sa && sb && !sa.isSame(sb)))
    fail('CRS', sa?.toWKT().slice(0, 60), sb?.toWKT().slice(0, 60));
}
