import gdal from 'gdal-async';
import {
  createRaster,
  gridOf,
  requireExact,
  requireStoredLayer,
  requireTransform,
  srsOfFeatures,
  walkBands,
  type BandReader,
} from '../raster.ts';
import { KitError, type JobContext, type SceneBand, type StepJob } from '../step-kit.ts';

interface Parameters {
  readonly band: string;
  readonly tolerance: number;
  readonly connected: '4' | '8';
  readonly sieve: number;
  readonly smallest: number;
}

export default async function work({
  parameters,
  scene,
  raster,
  outputs,
  workFolder,
  share,
  signal,
}: StepJob<Parameters, 'areas'>): Promise<void> {
  const { tolerance, smallest, sieve } = parameters;
  const connectedness = parameters.connected === '8' ? 8 : 4;
  const found = scene.findBand(parameters.band);
  const { dataset } = found;
  requireTransform(gridOf(dataset));
  const reader = raster.reader(found, { scaling: 'stored' });
  // GDAL reads plain integers and their mask correctly; sieving needs a copy to write to.
  const isPlainInput = sieve < 2 && reader.isPlain && isInteger.test(found.band.dataType ?? '');
  const { classes, mask } = isPlainInput
    ? { classes: found.band, mask: found.band.getMaskBand() ?? undefined }
    : await wholeNumbers({ found, reader }, workFolder, share(0, 0.3));
  if (sieve > 1)
    gdal.sieveFilter({ src: classes, dst: classes, ...(mask && { mask }), threshold: sieve, connectedness });
  const finding = share(0.3, 0.7);
  const isPlain = tolerance === 0 && smallest === 0;
  const areas = gdal.drivers.get('GPKG').create(isPlain ? outputs.areas : `${workFolder}/areas.gpkg`);
  const layer = areas.layers.create('areas', srsOfFeatures(dataset), gdal.wkbPolygon);
  layer.fields.add(new gdal.FieldDefn('value', gdal.OFTInteger64));
  await gdal.polygonizeAsync({
    src: classes,
    dst: layer,
    ...(mask && { mask }),
    connectedness,
    pixValField: 0,
    progress_cb: (fraction) => finding.progress(fraction),
  });
  signal.throwIfAborted();
  if (!isPlain) {
    const kept = gdal.drivers.get('GPKG').create(outputs.areas);
    const chosen = kept.layers.create('areas', srsOfFeatures(dataset), gdal.wkbPolygon);
    chosen.fields.add(new gdal.FieldDefn('value', gdal.OFTInteger64));
    layer.features.forEach((feature) => {
      signal.throwIfAborted();
      // Polygonizing makes polygons only.
      const geometry = feature.getGeometry() as InstanceType<typeof gdal.Polygon>;
      if (geometry.getArea() < smallest) return;
      const simple = tolerance === 0 ? geometry : geometry.simplifyPreserveTopology(tolerance);
      const polygon = new gdal.Feature(chosen);
      // A field of integers.
      polygon.fields.set({ value: feature.fields.get('value') as number });
      polygon.setGeometry(simple);
      chosen.features.add(polygon);
    });
    kept.close();
  }
  areas.close();
  requireStoredLayer(dataset, outputs.areas);
  if (!isPlainInput) classes.ds.close();
  share(0, 1).progress(1);
}

/** Integer types that GDAL polygonizes without loss. */
const isInteger = /^(Byte|U?Int16|U?Int32)$/;

/** Copies a band into a raster of two bands: its stored numbers, and a mask. Throws for a fraction, which GDAL would round. */
async function wholeNumbers(
  { found, reader }: { readonly found: SceneBand; readonly reader: BandReader },
  folder: string,
  context: JobContext,
): Promise<{ classes: gdal.RasterBand; mask: gdal.RasterBand }> {
  const path = `${folder}/classes.tif`;
  const isLarge = !/^(Byte|U?Int16|Int32)$/.test(found.band.dataType ?? '');
  const made = await createRaster(
    {
      path,
      grid: gridOf(found.dataset),
      dataType: isLarge ? 'Float64' : 'Int32',
      bands: [{ description: 'classes' }, { description: 'mask' }],
    },
    (target) =>
      walkBands(
        { inputs: [reader], outputs: [target.bands.get(1), target.bands.get(2)] },
        ([values], [classes, mask], { width, rows }) => {
          for (let i = 0; i < width * rows; i++) {
            const value = values![i]!;
            const isThere = Number.isFinite(value);
            if (isThere && !Number.isInteger(value)) throw notWhole(value);
            if (isThere) requireExact(value);
            classes![i] = isThere ? value : 0;
            mask![i] = isThere ? 1 : 0;
          }
        },
        context,
      ),
  );
  made.close();
  const dataset = gdal.drivers.get('GTiff').open(path, 'r+');
  return { classes: dataset.bands.get(1), mask: dataset.bands.get(2) };
}

const notWhole = (value: number) =>
  new KitError(
    'not_classes',
    `the band holds ${value}, and classes must be whole numbers; convert the band first, for example by floor(...) in the step band-math`,
    { status: 422 },
  );
