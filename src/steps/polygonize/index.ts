import type gdal from 'gdal-async';
import { band } from '../parameters.ts';
import { KitError } from '../../contract/kit-error.ts';
import type { JobContext } from '../../child/in-child.ts';
import type { BandReader } from '../../raster/band-reader.ts';
import type { SceneBand } from '../../raster/scene.ts';
import { requireTransform } from '../require-placed.ts';
import { requireStoredLayer } from '../stored-layer.ts';
import { defineStep, z, type StepJob } from '../step.ts';

/** The areas of a raster of classes, as polygons. */
export default defineStep({
  id: 'polygonize',
  version: '2.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Polygons of classes',
  description:
    'Connected areas of the same whole number in a raster, as polygons of a GeoPackage, simplified where you say so.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds classes.' }),
    tolerance: z.number().min(0).max(1e6).default(0).meta({
      title: 'Tolerance',
      description:
        'How far a simplified outline may lie from the pixels, in units of the reference system; 0 keeps every corner. Each area is simplified by itself: neighbours may overlap or part by that much.',
    }),
    connected: z.enum(['4', '8']).default('4').meta({
      title: 'Connected by',
      description: 'Pixels that share a side (4), or a side or a corner (8), are one area.',
    }),
    sieve: z.int().min(0).max(1_000_000).default(0).meta({
      title: 'Sieve',
      description: 'Areas of fewer pixels become part of their largest neighbour.',
    }),
    smallest: z.number().min(0).max(1e12).default(0).meta({
      title: 'Smallest area',
      description: 'Polygons below it are left out, in square units of the reference system.',
    }),
  }),
  input: { description: 'One raster of classes.', maxItems: 1, synthetic: 'elevation' },
  outputs: {
    areas: {
      kind: 'vector',
      fileName: 'areas.gpkg',
      sourceType: 'POLYGON',
      geometry: 'Polygon',
      fields: { value: 'integer' },
    },
  },

  async run({ parameters, scene, gdal, raster, outputs, workFolder, share, signal }) {
    const { tolerance, smallest, sieve } = parameters;
    const connectedness = parameters.connected === '8' ? 8 : 4;
    const found = scene.findBand(parameters.band);
    const { dataset } = found;
    requireTransform(raster.gridOf(dataset));
    const reader = raster.reader(found, { scaling: 'stored' });
    // GDAL reads plain integers and their mask correctly; sieving needs a copy to write to.
    const isPlainInput = sieve < 2 && reader.isPlain && isInteger.test(found.band.dataType ?? '');
    const { classes, mask } = isPlainInput
      ? { classes: found.band, mask: found.band.getMaskBand() ?? undefined }
      : await wholeNumbers(gdal, raster, { found, reader }, workFolder, share(0, 0.3));
    if (sieve > 1)
      gdal.sieveFilter({ src: classes, dst: classes, ...(mask && { mask }), threshold: sieve, connectedness });
    const finding = share(0.3, 0.7);
    const isPlain = tolerance === 0 && smallest === 0;
    const areas = gdal.drivers.get('GPKG').create(isPlain ? outputs.areas : `${workFolder}/areas.gpkg`);
    const layer = areas.layers.create('areas', dataset.srs, gdal.wkbPolygon);
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
      const chosen = kept.layers.create('areas', dataset.srs, gdal.wkbPolygon);
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
    requireStoredLayer(gdal, dataset, outputs.areas);
    if (!isPlainInput) classes.ds.close();
    share(0, 1).progress(1);
  },
});

/** Integer types that GDAL polygonizes without loss. */
const isInteger = /^(Byte|U?Int16|U?Int32)$/;

/** Copies a band into a raster of two bands: its stored numbers, and a mask. Throws for a fraction, which GDAL would round. */
async function wholeNumbers(
  opener: typeof gdal,
  raster: StepJob<never>['raster'],
  { found, reader }: { readonly found: SceneBand; readonly reader: BandReader },
  folder: string,
  context: JobContext,
): Promise<{ classes: gdal.RasterBand; mask: gdal.RasterBand }> {
  const path = `${folder}/classes.tif`;
  const isLarge = !/^(Byte|U?Int16|Int32)$/.test(found.band.dataType ?? '');
  const made = await raster.createRaster(
    {
      path,
      grid: raster.gridOf(found.dataset),
      dataType: isLarge ? 'Float64' : 'Int32',
      bands: [{ description: 'classes' }, { description: 'mask' }],
    },
    (target) =>
      raster.walkBands(
        { inputs: [reader], outputs: [target.bands.get(1), target.bands.get(2)] },
        ([values], [classes, mask], { width, rows }) => {
          for (let i = 0; i < width * rows; i++) {
            const value = values![i]!;
            const isThere = Number.isFinite(value);
            if (isThere && !Number.isSafeInteger(value)) throw notWhole(value);
            classes![i] = isThere ? value : 0;
            mask![i] = isThere ? 1 : 0;
          }
        },
        context,
      ),
  );
  made.close();
  const dataset = opener.drivers.get('GTiff').open(path, 'r+');
  return { classes: dataset.bands.get(1), mask: dataset.bands.get(2) };
}

const notWhole = (value: number) =>
  new KitError(
    'not_classes',
    `the band holds ${value}, and classes must be whole numbers; convert the band first, for example by floor(...) in the step band-math`,
    { status: 422 },
  );
