/**
 * Copies for GDAL's warper, which knows neither items nor signed bytes, nor a mask beside nodata, nor sources that mark missing pixels differently.
 * In a wider type a value that no pixel has marks missing pixels; afterwards the raster gets its own type again.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import {
  alphaOf,
  BandReader,
  hasOwnMask,
  isSignedByte,
  nodataOf,
  readerOf,
  type ValueScale,
} from '../raster/band-reader.ts';
import { canHold, integerRanges } from '../raster/integer-types.ts';
import { createRaster, gridOf, type Grid } from '../raster/cog.ts';
import type { SceneBand } from '../raster/scene.ts';
import { partOf, type JobContext } from '../child/in-child.ts';
import { eachStrip, walkBands } from '../raster/block-walk.ts';
import { keepStatistics, statisticsOf } from '../raster/statistics.ts';
import { metadataOf } from '../raster/metadata-of.ts';

export const tiled = ['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER'];

/** The wider type of each integer type, and the value that marks missing pixels. Others become Float64, or stay real, with NaN. */
const wider: Readonly<Record<string, readonly [type: string, missing: number]>> = {
  Byte: ['Int16', -32_768],
  Int8: ['Int16', -32_768],
  UInt16: ['Int32', -2_147_483_648],
  Int16: ['Int32', -2_147_483_648],
};

/** The type that holds a band's values. Signed bytes of old files are 16-bit integers. */
export const typeOf = (band: gdal.RasterBand): string => (isSignedByte(band) ? 'Int16' : (band.dataType ?? 'Float32'));

export const wideTypeOf = (type: string): readonly [type: string, missing: number] =>
  wider[type] ?? [type === 'Float32' ? 'Float32' : 'Float64', NaN];

/** Copies stored numbers of bands, without alpha, to the wider type of `type`. The caller closes the copy. */
export function widened(
  bands: readonly SceneBand[],
  { path, grid, type, nodata }: { path: string; grid: Grid; type: string; nodata?: number | undefined },
  context: JobContext,
): Promise<gdal.Dataset> {
  const [dataType, missing] = wideTypeOf(type);
  const alpha = alphaOf(bands[0]!.dataset);
  const values = bands.filter(({ index }) => index !== alpha?.id);
  return createRaster(
    {
      path,
      grid,
      dataType,
      bands: values.map((sceneBand) => ({ description: sceneBand.band.description, nodata: missing })),
    },
    (target) =>
      walkBands(
        {
          inputs: values.map((sceneBand) =>
            readerOf(sceneBand, { scaling: 'stored', isExact: true, ...(nodata !== undefined && { nodata }) }),
          ),
          outputs: values.map((_, i) => target.bands.get(i + 1)),
        },
        (inputs, outputs, { width, rows }) =>
          outputs.forEach((out, k) => {
            for (let i = 0; i < width * rows; i++) {
              const value = inputs[k]![i]!;
              out[i] = Number.isNaN(value) ? missing : value;
            }
          }),
        context,
      ),
  );
}

/**
 * Copies a wide raster to `type`. `nodata` marks missing pixels if no valid pixel has that value, else a mask. If the bands miss different pixels and there is no
 * `nodata`, a free value of the type marks them. `hasAlpha` adds an alpha band. `isStrict` refuses values beyond the type, which otherwise get its nearest value. Throws `KitError` if none of these is possible. The caller closes the result.
 */
export async function narrowed(
  { workFolder }: { readonly workFolder: string },
  wide: gdal.Dataset,
  {
    type,
    nodata,
    hasAlpha,
    like,
    isStrict = false,
  }: { type: string; nodata: number | null; hasAlpha: boolean; like: gdal.Dataset; isStrict?: boolean },
  context: JobContext,
): Promise<gdal.Dataset> {
  const count = wide.bands.count();
  const readers = wide.bands.map((band) => readerOf(band, { scaling: 'stored' }));
  const isReal = type.startsWith('Float');
  const range = integerRanges[type];
  const stored = (value: number) => {
    if (isReal) return value;
    const whole = Math.round(value);
    if (isStrict && range && (whole < range[0] || whole > range[1]))
      throw new KitError(
        'value_out_of_range',
        `the sum ${whole} is beyond the type ${type}; convert the raster to a larger type by the step band-math first`,
        { status: 422 },
      );
    return range ? Math.min(range[1], Math.max(range[0], whole)) : whole;
  };
  const candidates = [
    nodata,
    ...(isReal ? [NaN] : [0, ...(range ?? []), ...(range ? [range[1] - 1, range[0] + 1] : [])]),
  ];
  const free = new Set(
    candidates
      .filter((candidate) => candidate !== null)
      .filter((candidate) => (Number.isNaN(candidate) ? isReal : canHold(type, candidate))),
  );
  let [isShared, isWhole] = [true, true];
  const { x: width } = wide.rasterSize;
  await eachStrip(
    // A raster has a band.
    { bands: wide.bands.map((band) => band) as [gdal.RasterBand], arrays: count },
    (y, rows) => {
      const strips = readers.map((reader) => {
        const values = new Float64Array(width * rows);
        reader.read([0, y, width, rows], values);
        return values;
      });
      for (let i = 0; i < width * rows; i++) {
        let missing = 0;
        for (const values of strips) {
          if (Number.isNaN(values[i])) missing++;
          else if (free.size > 0) free.delete(stored(values[i]!));
        }
        if (missing > 0) isWhole = false;
        if (missing > 0 && missing < count) isShared = false;
      }
    },
    partOf(context, 0, 0.3),
  );
  const isDeclared = nodata !== null && free.has(nodata);
  const other = nodata === null && (isReal || !isShared) ? [...free][0] : undefined;
  // Alpha cannot mark a pixel that only some bands miss.
  const marks = hasAlpha && isShared ? null : isDeclared ? nodata : (other ?? (isShared ? null : undefined));
  if (marks === undefined && !isWhole)
    throw new KitError(
      'no_free_value',
      nodata === null
        ? `the rasters use the values of ${type} that usually mark missing pixels; convert them to a larger type first`
        : `valid pixels have the nodata value ${nodata}, and no mask can mark pixels that only some bands miss; give the rasters another nodata value first`,
      { status: 422 },
    );
  const filler = marks ?? 0;
  const bands = wide.bands.map(({ description }) => ({ description, ...(marks != null && { nodata: marks }) }));
  const needsMask = hasAlpha || marks == null;
  // Alpha has the largest value of its type where a pixel is there.
  const opaque = hasAlpha ? (range?.[1] ?? 255) : 255;
  const alpha = alphaOf(like);
  const made = await createRaster(
    {
      path: `${workFolder}/narrowed.tif`,
      grid: gridOf(wide),
      dataType: type,
      bands: needsMask ? [...bands, { description: alpha?.description ?? 'alpha' }] : bands,
    },
    (target) =>
      walkBands(
        { inputs: readers, outputs: target.bands.map((band) => band) },
        (inputs, outputs, { width, rows }) => {
          for (let i = 0; i < width * rows; i++) {
            let isThere = false;
            for (let k = 0; k < count; k++) {
              const value = inputs[k]![i]!;
              isThere ||= !Number.isNaN(value);
              outputs[k]![i] = Number.isNaN(value) ? filler : stored(value);
            }
            if (needsMask) outputs[count]![i] = isThere ? opaque : 0;
          }
        },
        partOf(context, 0.3, 1),
      ),
  );
  const result =
    needsMask && !hasAlpha
      ? await maskFromAlpha(made, count, null, `${workFolder}/narrowed-masked.tif`, nodata !== null)
      : made;
  const colours = like.bands.map((band) => band).filter((band) => band.id !== alpha?.id);
  colours.forEach(({ colorTable, colorInterpretation }, i) => {
    const own = result.bands.get(i + 1);
    if (colorTable && type === 'Byte') own.colorTable = colorTable;
    if (colorInterpretation) own.colorInterpretation = colorInterpretation;
  });
  if (hasAlpha) {
    result.bands.get(count + 1).colorInterpretation = 'Alpha';
    // The statistics of the walk include transparent pixels.
    for (let i = 1; i <= count; i++) {
      const band = result.bands.get(i);
      keepStatistics(band, statisticsOf([new BandReader({ band }, { scaling: 'stored' })])[0] ?? null);
    }
  }
  result.setMetadata(metadataOf(like));
  const place = hasAlpha ? (alpha?.id ?? count + 1) : count + 1;
  return place > count ? result : withAlphaAt(place, result, `${workFolder}/ordered.tif`);
}

/** Moves alpha, the last band, to the place that it had. Closes the raster. */
async function withAlphaAt(place: number, made: gdal.Dataset, path: string): Promise<gdal.Dataset> {
  made.flush();
  const last = made.bands.count();
  const others = Array.from({ length: last - 1 }, (_, i) => i + 1);
  const order = others.toSpliced(place - 1, 0, last).flatMap((id) => ['-b', String(id)]);
  const ordered = await gdal.translateAsync(path, made, [...order, ...tiled]);
  made.close();
  return ordered;
}

/**
 * True if other programs would read a raster's missing pixels otherwise: bands with a mask of their own, signed bytes, and bands
 * that name no nodata beside one that does, because a GeoTIFF has one value for all.
 */
export function needsPlainCopy(bands: readonly SceneBand[]): boolean {
  if (bands.some(({ band }) => hasOwnMask(band) || isSignedByte(band))) return true;
  const alpha = bands[0] && alphaOf(bands[0].dataset)?.id;
  const declared = new Set(
    bands
      .filter(({ band }) => band.id !== alpha)
      .map(({ band, ofItem }) => nodataOf(band) ?? (band.noDataValue === null ? (ofItem?.nodata ?? null) : null)),
  );
  return declared.size > 1 && declared.has(null);
}

/** A copy of a scene's only raster that every program of GDAL reads right: without signed bytes, and without masks of single bands. The caller closes it. */
export async function plainCopy(
  workFolder: string,
  scene: { readonly bands: readonly SceneBand[]; onlyRaster(): gdal.Dataset },
  context: JobContext,
): Promise<gdal.Dataset> {
  const source = scene.onlyRaster();
  const [first] = scene.bands;
  const type = first ? typeOf(first.band) : 'Float32';
  const wide = await widened(scene.bands, { path: `${workFolder}/wide.tif`, grid: gridOf(source), type }, context);
  const nodata =
    scene.bands.map(({ band, ofItem }) => band.noDataValue ?? ofItem?.nodata ?? null).find((value) => value !== null) ??
    null;
  const target = { type, nodata, hasAlpha: alphaOf(source) !== null, like: source };
  const made = await narrowed({ workFolder }, wide, target, context);
  wide.close();
  keepScales(
    made,
    scene.bands.map((band) => new BandReader(band).scale),
  );
  return made;
}

/** Converts the last band to a mask. Leaves the mask out if every pixel is covered, unless it `isWanted`, or if nodata marks the gaps. */
export async function maskFromAlpha(
  made: gdal.Dataset,
  count: number,
  nodata: number | null,
  path: string,
  isWanted = false,
): Promise<gdal.Dataset> {
  made.flush();
  const alpha = made.bands.get(count + 1);
  const isCovered = (statisticsOf([new BandReader({ band: alpha })])[0]?.min ?? 0) > 0;
  const bands = Array.from({ length: count }, (_, i) => ['-b', String(i + 1)]).flat();
  const mask = (isCovered && !isWanted) || nodata !== null ? ['-mask', 'none'] : ['-mask', String(count + 1)];
  const masked = await gdal.translateAsync(path, made, [...bands, ...mask, ...tiled]);
  made.close();
  return masked;
}

/** Writes the unit of each band into a raster: the first that a source states. */
export function keepUnits(dataset: gdal.Dataset, sources: readonly { readonly bands: readonly SceneBand[] }[]): void {
  for (const band of dataset.bands.map((rasterBand) => rasterBand)) {
    // GDAL counts bands from 1.
    const unit = sources.map(({ bands }) => bands[(band.id ?? 0) - 1]?.band.unitType).find(Boolean);
    if (unit) band.unitType = unit;
  }
}

/** A view of a raster, which it closes, with the descriptions of other bands. GDAL gives none to a raster that got alpha, and the bindings cannot set them. */
export function withDescriptions(made: gdal.Dataset, like: readonly gdal.RasterBand[], path: string): gdal.Dataset {
  if (like.every(({ description }) => description === '')) return made;
  made.flush();
  gdal.drivers.get('VRT').createCopy(path, made).close();
  made.close();
  const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const described = readFileSync(path, 'utf8')
    // GDAL does not look for the source of a mask beside the view.
    .replaceAll('relativeToVRT="1">', () => `relativeToVRT="0">${escaped(dirname(path))}/`)
    .replace(/<VRTRasterBand [^>]*band="(\d+)"[^>]*>/g, (tag: string, number: string) => {
      const { description = '' } = like[Number(number) - 1] ?? {};
      return description === '' ? tag : `${tag}<Description>${escaped(description)}</Description>`;
    });
  return gdal.drivers.get('VRT').open(described);
}

/** Writes the scale of each band into a raster. */
export function keepScales(dataset: gdal.Dataset, scales: readonly ValueScale[]): void {
  scales.forEach(({ factor, offset }, i) => {
    if (factor === 1 && offset === 0) return;
    const band = dataset.bands.get(i + 1);
    [band.scale, band.offset] = [factor, offset];
  });
}

/** A view of a raster with the nodata value and the scale of its catalog item, where the file has none. Returns the raster itself if there is nothing to add. */
export function withItemFacts(dataset: gdal.Dataset, bands: readonly SceneBand[]): gdal.Dataset {
  const facts = bands.map((band) => {
    const { scale, scaleOrigin } = new BandReader(band);
    const { noDataValue } = band.band;
    return {
      scale: scaleOrigin === 'item' ? scale : null,
      nodata: noDataValue === null ? (band.ofItem?.nodata ?? null) : null,
    };
  });
  if (facts.every(({ scale, nodata }) => scale === null && nodata === null)) return dataset;
  const view = gdal.drivers.get('VRT').createCopy('', dataset);
  facts.forEach(({ scale, nodata }, i) => {
    const band = view.bands.get(i + 1);
    if (scale) [band.scale, band.offset] = [scale.factor, scale.offset];
    if (nodata !== null && canHold(band.dataType, nodata)) band.noDataValue = nodata;
  });
  return view;
}
