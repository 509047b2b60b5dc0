/** Only for child processes: holds what a step has left against what it declares. */
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import gdal from 'gdal-async';
import { KitError } from '../../contract/kit-error.ts';
import { alphaOf, isSignedByte, maskOf, readerOf } from '../../raster/band-reader.ts';
import { canHold } from '../../raster/integer-types.ts';
import { openRaster } from '../../raster/open-raster.ts';
import { openVector } from '../../raster/open-vector.ts';
import type { Scene } from '../../raster/scene.ts';
import {
  outputsOf,
  type AnyStep,
  type BandDeclaration,
  type OutputDeclaration,
  type RasterOutput,
  type VectorOutput,
} from '../../steps/step.ts';
import { messageOf } from '../../files/index.ts';

/** The step did not do what its declaration says. */
class BrokenStepError extends KitError {
  constructor(stepId: string, what: string) {
    super('step_broke_its_declaration', `step ${stepId} ${what}`, { status: 500 });
  }
}

/** An output that the step has made. */
export interface MadeOutput {
  readonly name: string;
  readonly path: string;
  readonly declared: OutputDeclaration;
}

/** Access modes of a descriptor's flags (open(2)). */
const accessMode = 3;
const readOnly = 0;

/**
 * Throws if the step, or a program that it started, still has an output open for writing: an open dataset has not written
 * all of its pixels yet. Does nothing on a system without `/proc`.
 */
export function requireClosed(step: AnyStep, paths: Readonly<Record<string, string>>): void {
  const open = outputsOf(step).filter(([name]) => isOpenForWriting(paths[name] ?? ''));
  if (open.length > 0)
    throw new BrokenStepError(
      step.id,
      `left ${open.map(([, { fileName }]) => fileName).join(' and ')} open: close each dataset before run() ends, or part of its data is missing`,
    );
}

function isOpenForWriting(path: string): boolean {
  return processesHere().some((pid) =>
    namesIn(`/proc/${pid}/fd`).some((descriptor) => {
      try {
        if (readlinkSync(`/proc/${pid}/fd/${descriptor}`) !== path) return false;
        const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, 'utf8'))?.[1];
        return (Number.parseInt(flags ?? '0', 8) & accessMode) !== readOnly;
      } catch {
        // It was closed meanwhile.
        return false;
      }
    }),
  );
}

/** This process and those that it has started: a confined process sees no others. Without confinement, this process alone. */
const processesHere = () =>
  process.env['CONFINED'] === 'yes' ? namesIn('/proc').filter((name) => /^\d+$/.test(name)) : [String(process.pid)];

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The outputs that are there, as they are declared. Throws where one is not, or is missing and not optional. */
export function checkOutputs(step: AnyStep, paths: Readonly<Record<string, string>>, scene: Scene): MadeOutput[] {
  const made = outputsOf(step).flatMap(([name, declared]): MadeOutput[] => {
    const path = paths[name] ?? '';
    return declared.optional && !existsSync(path) ? [] : [{ name, path, declared }];
  });
  if (made.length === 0) throw new BrokenStepError(step.id, 'left no output');
  for (const { path, declared } of made) {
    const fail = (what: string): never => {
      throw new BrokenStepError(step.id, outputsOf(step).length === 1 ? what : `${what} (${declared.fileName})`);
    };
    if (declared.kind === 'vector') checkVector(path, declared, fail);
    else if (declared.kind === 'file') checkFile(path, fail);
    else checkRaster(path, declared, scene, fail);
  }
  return made;
}

type Fail = (what: string) => never;

function checkFile(path: string, fail: Fail): void {
  if (!existsSync(path) || !statSync(path).isFile()) return fail('left no file');
  if (statSync(path).size === 0) fail('left an empty file');
}

function checkRaster(path: string, declaration: RasterOutput, scene: Scene, fail: Fail): void {
  let output: gdal.Dataset;
  try {
    output = openRaster(path);
  } catch (cause) {
    return fail(`left no readable raster: ${messageOf(cause)}`);
  }
  try {
    const describe = (dataset: gdal.Dataset): BandDeclaration[] =>
      dataset.bands.map((band) => ({
        description: band.description,
        // Signed bytes of old files become 16-bit integers in a step that computes with them.
        dataType:
          isSignedByte(band) && dataset !== output && output.bands.get(1).dataType === 'Int16'
            ? 'Int16'
            : (band.dataType ?? ''),
        nodata: band.noDataValue ?? undefined,
      }));
    const actual = describe(output);
    if (declaration.bands === 'any') return;
    const declared =
      declaration.bands === 'as-input' ? describe(scene.datasets[0] ?? scene.onlyRaster()) : declaration.bands;
    if (actual.length !== declared.length) fail(`wrote ${actual.length} bands, but declares ${declared.length}`);
    declared.forEach((band, i) => {
      const got = actual[i];
      if (got?.dataType !== band.dataType)
        return fail(`wrote band ${i + 1} as ${got?.dataType}, but declares ${band.dataType}`);
      // A raster that names no value for gaps may get one. Alpha, or a mask if valid pixels have the declared value, may take its place.
      const isMasked =
        got.nodata === undefined &&
        (alphaOf(output) !== null ||
          (band.nodata !== undefined && maskOf(output.bands.get(i + 1)) !== null && hasValid(output, band.nodata)));
      const mayName =
        declaration.bands === 'as-input' &&
        (band.nodata === undefined || isMasked || !canKeepNodata(band.dataType, band.nodata));
      if (!mayName && !isSameNodata(band.dataType, got.nodata, band.nodata))
        fail(`wrote nodata ${got.nodata} in band ${i + 1}, but declares ${band.nodata}`);
      if (declaration.bands !== 'as-input' && hasStrayNaN(output, i + 1))
        fail(`wrote NaN into band ${i + 1}, which declares nodata ${band.nodata}: NaN is no value there, and no gap`);
    });
  } finally {
    output.close();
  }
}

/** True if an output of this type can keep the input's nodata value. A Byte cannot hold -10000, and GDAL drops the nodata of 64-bit integers. */
const canKeepNodata = (dataType: string, nodata: number): boolean =>
  canHold(dataType, nodata) && !dataType.endsWith('Int64');

/** True for the same value, also after 32 bits have rounded it. */
const isSameNodata = (dataType: string, written: number | undefined, declared: number | undefined): boolean =>
  Object.is(written, declared) ||
  (dataType === 'Float32' &&
    written !== undefined &&
    declared !== undefined &&
    Object.is(Math.fround(written), Math.fround(declared)));

/** True if a band of real numbers that names another value for gaps has NaN. Alpha and masks say themselves what counts. */
function hasStrayNaN(output: gdal.Dataset, number: number): boolean {
  const band = output.bands.get(number);
  const isReal = band.dataType === 'Float32' || band.dataType === 'Float64';
  const { noDataValue } = band;
  if (!isReal || noDataValue === null || Number.isNaN(noDataValue) || alphaOf(output) !== null) return false;
  const { x: width, y: height } = output.rasterSize;
  const rows = Math.max(1, Math.floor(1_000_000 / width));
  const values = new Float64Array(width * rows);
  for (let y = 0; y < height; y += rows) {
    const count = Math.min(rows, height - y);
    band.pixels.read(0, y, width, count, values);
    if (values.subarray(0, width * count).some(Number.isNaN)) return true;
  }
  return false;
}

/** True if a valid pixel of a raster has this stored value. */
function hasValid(output: gdal.Dataset, value: number): boolean {
  const { x: width, y: height } = output.rasterSize;
  const rows = Math.max(1, Math.floor(1_000_000 / width));
  const values = new Float64Array(width * rows);
  return output.bands
    .map((band) => readerOf(band, { scaling: 'stored' }))
    .some((reader) => {
      for (let y = 0; y < height; y += rows) {
        const count = Math.min(rows, height - y);
        reader.read([0, y, width, count], values);
        if (values.subarray(0, width * count).includes(value)) return true;
      }
      return false;
    });
}

/** OGR's names of a field's type, by the declaration's. */
const typesOf: Readonly<Record<VectorOutput['fields'][string], readonly string[]>> = {
  string: ['string'],
  integer: ['integer', 'integer64'],
  real: ['real'],
  // OGR keeps them as integers of a subtype.
  boolean: ['integer'],
  date: ['date'],
  datetime: ['dateTime'],
};

/** GeoJSON has one kind of number, and no dates. */
const alsoInJson: typeof typesOf = {
  ...{ string: [], integer: [], boolean: [] },
  ...{ real: ['integer', 'integer64'], date: ['string'], datetime: ['string'] },
};

function checkVector(path: string, { geometry, fields }: VectorOutput, fail: Fail): void {
  let output: gdal.Dataset;
  try {
    output = openVector(path);
  } catch (cause) {
    return fail(`left no readable features: ${messageOf(cause)}`);
  }
  try {
    const count = output.layers.count();
    if (count !== 1) fail(`wrote ${count} layers, but an output has one`);
    const layer = output.layers.get(0);
    const isJson = output.driver.description === 'GeoJSON';
    let features = 0;
    const withValues = new Set<string>();
    layer.features.forEach((feature) => {
      features += 1;
      if (isJson && withValues.size < layer.fields.count())
        // Values by the names of their fields; gdal-async gives them the type `any`.
        for (const [name, value] of Object.entries(feature.fields.toObject() as object))
          if (value !== null) withValues.add(name);
      const found = geometryName(feature);
      if (found !== geometry) fail(`wrote feature ${features} as ${found}, but declares ${geometry}`);
    });
    // All values in CSV are text.
    const isText = output.driver.description === 'CSV';
    const found = new Map(layer.fields.map((field) => [field.name, field.type]));
    // GeoJSON without features says nothing of fields.
    if (features === 0 && found.size === 0) return;
    for (const [name, type] of Object.entries(fields)) {
      const is = found.get(name);
      if (is === undefined) fail(`left out the field ${name}, which it declares`);
      // A field without any value has no type in GeoJSON.
      else if (isJson && !withValues.has(name)) continue;
      else if (!isText && ![...typesOf[type], ...(isJson ? alsoInJson[type] : [])].includes(is))
        fail(`wrote the field ${name} as ${is}, but declares ${type}`);
    }
    for (const name of found.keys())
      if (!Object.hasOwn(fields, name)) fail(`wrote a field ${name}, which it does not declare`);
  } finally {
    output.close();
  }
}

/** `Polygon`, without a third dimension. */
export function geometryName(feature: gdal.Feature): string {
  // The bindings throw where there is none.
  let geometry: gdal.Geometry | null;
  try {
    geometry = feature.getGeometry();
  } catch {
    geometry = null;
  }
  if (!geometry) return 'None';
  const upper = geometry.name;
  return (
    ['Point', 'LineString', 'Polygon', 'MultiPoint', 'MultiLineString', 'MultiPolygon'].find(
      (name) => name.toUpperCase() === upper,
    ) ?? upper
  );
}
