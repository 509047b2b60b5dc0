import { setImmediate as tick } from 'node:timers/promises';
import gdal from 'gdal-async';
import {
  addMask,
  alphaOf,
  integerRanges,
  keepUnits,
  markInside,
  maskOfAllBands,
  metadataOf,
  needsPlainCopy,
  nodataOf,
  plainCopy,
  transformOf,
  typeOf,
  windowOf,
  withItemFacts,
  type PixelRings,
} from '../raster.ts';
import { KitError, type StepJob } from '../step-kit.ts';

const stripPixels = 500_000;
const areasBetweenTicks = 200;

/**
 * Cuts the only raster of the input to areas, and writes the output. `areasOn` places the areas on the raster; a pixel stays if its centre is in one of them.
 * Throws `KitError` if the raster has no place, if no pixel is inside, or if `outside` cannot mark no data.
 */
export async function cutTo(
  {
    parameters,
    scene,
    raster,
    outputPath,
    workFolder,
    share,
    signal,
  }: Pick<StepJob<never>, 'scene' | 'raster' | 'outputPath' | 'workFolder' | 'share' | 'signal'> & {
    readonly parameters: { readonly outside?: number | undefined };
  },
  areasOn: (source: gdal.Dataset) => readonly PixelRings[],
): Promise<void> {
  const source = scene.onlyRaster();
  if (!source.srs || !transformOf(source))
    throw new KitError('not_placed', 'the raster does not say where it lies, so no area lies in it', { status: 422 });
  for (const { band } of scene.bands) requireFits(band, parameters.outside);
  const areas = areasOn(source);
  const window = windowOf(areas.flat(), source.rasterSize.x, source.rasterSize.y);
  if (!window) throw outside();
  const view = needsPlainCopy(scene.bands)
    ? await plainCopy(workFolder, scene, share(0, 0.1))
    : withItemFacts(source, scene.bands);
  const isImpossible = view.bands.map((band) => band.noDataValue !== null && nodataOf(band) === null).some(Boolean);
  const translated = await gdal.translateAsync(`${workFolder}/cut.tif`, view, [
    // GDAL replaces such a value by the nearest one of the type.
    ...(isImpossible ? ['-a_nodata', 'none'] : []),
    ...['-srcwin', window.x, window.y, window.width, window.height].map(String),
    ...['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER', ...wholeDepth(view)],
  ]);
  if (view !== source) view.close();
  // GDAL writes blocks of zeros when it closes the file. A nodata value that is set before would take their place.
  translated.close();
  const cut = gdal.open(`${workFolder}/cut.tif`, 'r+');
  keepUnits(cut, [scene]);
  const clipping = share(0.1, 0.6);
  const gaps = gapsOf(cut, parameters.outside);
  const rows = Math.max(1, Math.min(window.height, Math.floor(stripPixels / window.width)));
  const strip = new Float64Array(window.width * rows);
  const [isInside, ofOne] = [new Uint8Array(strip.length), new Uint8Array(strip.length)];
  const placed = areas.flatMap((rings) => {
    const box = windowOf(rings, source.rasterSize.x, source.rasterSize.y);
    return box ? [{ rings, box }] : [];
  });
  let kept = 0;
  for (let y = 0; y < window.height; y += rows) {
    await tick();
    signal.throwIfAborted();
    const height = Math.min(rows, window.height - y);
    const count = window.width * height;
    isInside.fill(0, 0, count);
    for (const [k, { rings, box }] of placed.entries()) {
      // Only the part of the strip that the area can meet.
      const top = Math.max(window.y + y, box.y);
      const part = { ...box, y: top, height: Math.min(window.y + y + height, box.y + box.height) - top };
      if (part.height <= 0) continue;
      if (k % areasBetweenTicks === areasBetweenTicks - 1) {
        await tick();
        signal.throwIfAborted();
      }
      markInside(rings, part, ofOne);
      for (let row = 0, i = 0; row < part.height; row++) {
        const at = (top - window.y - y + row) * window.width + box.x - window.x;
        for (let column = 0; column < part.width; column++, i++) isInside[at + column]! |= ofOne[i]!;
      }
    }
    for (let i = 0; i < count; i++) kept += isInside[i]!;
    for (const { band, value, isNew } of gaps) {
      band.pixels.read(0, y, window.width, height, strip);
      for (let i = 0; i < count; i++) {
        if (isInside[i] === 0) strip[i] = value;
        else if (isNew && strip[i] === value) throw occursInside(value);
      }
      band.pixels.write(0, y, window.width, height, strip);
    }
    clipping.progress(Math.min(1, (y + rows) / window.height));
  }
  if (kept === 0) throw outside();
  cut.flush();
  raster.writeCog(cut, outputPath, { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' }, share(0.6, 1));
  cut.close();
}

/** Options that give every band the whole depth of its type. A nodata value need not fit into fewer bits, and GDAL would write the nearest value that does. */
function wholeDepth(view: gdal.Dataset): string[] {
  const isPartial = view.bands
    .map((band) => metadataOf(band, 'IMAGE_STRUCTURE')['NBITS'])
    .some((bits) => bits !== undefined);
  const whole = /^U?(?:Byte|(?:Int|Float)(8|16|32))$/.exec(view.bands.get(1).dataType ?? '');
  return isPartial && whole ? ['-co', `NBITS=${whole[1] ?? 8}`] : [];
}

/** A band to write outside the area, and the value that marks no data there. `isNew`: this step chose the value, so pixels may hold it. */
interface Gap {
  readonly band: gdal.RasterBand;
  readonly value: number;
  readonly isNew: boolean;
}

/** The mask, alpha and nodata values of the raster. If it has none, adds a mask to integers, and NaN to real numbers. */
function gapsOf(cut: gdal.Dataset, outside: number | undefined): Gap[] {
  const alpha = alphaOf(cut);
  const bands = cut.bands.map((band) => band).filter((band) => band.id !== alpha?.id);
  const known = bands.flatMap((band): Gap[] => {
    const value = nodataOf(band);
    return value === null ? [] : [{ band, value, isNew: false }];
  });
  const masks = [alpha, maskOfAllBands(cut)].flatMap((band): Gap[] => (band ? [{ band, value: 0, isNew: false }] : []));
  if (masks.length > 0) return [...masks, ...known];
  if (outside === undefined && bands.some((band) => nodataOf(band) === null && !isReal(band)))
    return [{ band: addMask(cut), value: 0, isNew: false }, ...known];
  const unknown = bands.filter((band) => nodataOf(band) === null);
  return [
    ...known,
    ...unknown.map((band): Gap => {
      const value = isReal(band) ? NaN : outside!;
      band.noDataValue = value;
      return { band, value, isNew: true };
    }),
  ];
}

const isReal = ({ dataType }: gdal.RasterBand) => dataType?.startsWith('Float') ?? false;

const occursInside = (value: number) =>
  new KitError(
    'value_occurs_inside',
    `pixels inside the area have the value ${value}, which would mark no data: choose another value outside, or leave it out`,
    { status: 422 },
  );

function requireFits(band: gdal.RasterBand, value: number | undefined): void {
  const type = typeOf(band);
  if (type.startsWith('Float')) return;
  const range = integerRanges[type];
  if (!range)
    throw new KitError(
      'type_not_supported',
      `the step cuts real numbers and integers of up to 32 bits, and not ${type}; ${type.startsWith('C') ? 'make the amplitude or the phase of its complex numbers a band first' : 'convert the raster by the step band-math first'}`,
      {
        status: 422,
      },
    );
  if (
    value !== undefined &&
    nodataOf(band) === null &&
    !(Number.isInteger(value) && value >= range[0] && value <= range[1])
  )
    throw new KitError(
      'value_does_not_fit',
      `the value outside must be a whole number from ${range[0]} to ${range[1]} in a raster of ${type}, and is ${value}`,
      { status: 422 },
    );
}

const outside = () =>
  new KitError('area_outside', 'no pixel of the raster has its centre inside the area', { status: 422 });
