/** Rasters that tests make, run through a step and read back. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import type { StepParameters } from '../../src/app/processing/step-parameters.ts';
import allSteps from './all-steps.ts';
import { startStepHost } from './step-host.ts';

/** A raster that a test makes: by default 20 x 10 pixels of 30 m. */
export interface Made {
  readonly width?: number;
  readonly height?: number;
  readonly type?: string;
  /** Default UTM 33N; null: none. */
  readonly epsg?: number | string | null;
  /** Null: none. */
  readonly transform?: readonly number[] | null;
  /** Places the raster in another way. */
  readonly place?: (dataset: gdal.Dataset) => void;
  readonly nodata?: number;
  readonly bands: readonly ((x: number, y: number) => number)[];
  /** Values of an internal mask. Default: no mask. */
  readonly mask?: (x: number, y: number) => number;
  /** The last band is alpha. */
  readonly hasAlpha?: boolean;
  readonly scale?: readonly [factor: number, offset: number];
  readonly options?: readonly string[];
}

export function make(path: string, made: Made): string {
  const { width = 20, height = 10, type = 'UInt16', epsg = 32633, bands } = made;
  const { transform = [500_000, 30, 0, 5_000_000, 0, -30] } = made;
  gdal.config.set('GDAL_TIFF_INTERNAL_MASK', 'YES');
  const options = [...(made.options ?? [])];
  const dataset = gdal.drivers.get('GTiff').create(path, width, height, bands.length, type, options);
  if (epsg !== null)
    dataset.srs =
      typeof epsg === 'number' ? gdal.SpatialReference.fromEPSG(epsg) : gdal.SpatialReference.fromUserInput(epsg);
  if (transform) dataset.geoTransform = [...transform];
  made.place?.(dataset);
  const values = (of: (x: number, y: number) => number) =>
    Float64Array.from({ length: width * height }, (_, i) => of(i % width, Math.floor(i / width)));
  bands.forEach((of, i) => {
    const band = dataset.bands.get(i + 1);
    if (made.nodata !== undefined) band.noDataValue = made.nodata;
    if (made.scale) [band.scale, band.offset] = made.scale;
    band.pixels.write(0, 0, width, height, values(of));
  });
  if (made.hasAlpha) dataset.bands.get(bands.length).colorInterpretation = 'Alpha';
  if (made.mask) {
    dataset.bands.get(1).createMaskBand(2);
    dataset.bands.get(1).getMaskBand()!.pixels.write(0, 0, width, height, values(made.mask));
  }
  dataset.close();
  return path;
}

/** Reads a raster. Missing pixels are null. */
export function read(path: string) {
  const dataset = gdal.open(path);
  const { x: width, y: height } = dataset.rasterSize;
  const bands = dataset.bands.map((band) => {
    const values = band.pixels.read(0, 0, width, height, new Float64Array(width * height)) as Float64Array;
    const mask = band.getMaskBand()?.pixels.read(0, 0, width, height, new Uint8Array(width * height));
    return [...values].map((value, i) => (Number.isNaN(value) || (mask && mask[i] === 0) ? null : value));
  });
  const { geoTransform } = dataset;
  const metadata = dataset.bands.get(1).getMetadata() as Record<string, string>;
  dataset.close();
  return { width, height, bands, geoTransform: geoTransform!, metadata };
}

export async function run(
  stepId: string,
  made: Made | readonly Made[],
  parameters: StepParameters = {},
  definition = allSteps,
) {
  const started = await startStepHost({ definition, keepsChildren: true });
  const all = Array.isArray(made) ? (made as readonly Made[]) : [made as Made];
  all.forEach((one, i) => make(join(started.inputDir, `${String.fromCharCode(97 + i)}.tif`), one));
  const checked = (
    await started.host.check(stepId, parameters, { type: 'local', path: all.length > 1 ? '.' : 'a.tif' })
  ).parameters;
  const output = await started.run(stepId, { type: 'local', path: all.length > 1 ? '.' : 'a.tif' }, checked);
  return { ...output, raster: () => read(output.path) };
}

export const valid = (values: readonly (number | null)[]) => values.filter((value) => value !== null);
