import { band } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

/** The areas of a raster of classes, as polygons. */
export default defineStep({
  id: 'polygonize',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Polygons of classes',
  description:
    'Connected areas of the same whole number in a raster, as polygons of a GeoPackage, simplified where you say so.',
  parameters: z.object({
    band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds classes.' }),
    tolerance: z.number().min(0).max(1e6).default(0).meta({
      title: 'Tolerance',
      description:
        'How far a simplified outline may lie from the pixels, in units of the reference system; 0 keeps every corner.',
    }),
    smallest: z.number().min(0).max(1e12).default(0).meta({
      title: 'Smallest area',
      description: 'Polygons below it are left out, in square units of the reference system.',
    }),
  }),
  input: { description: 'One raster of classes.', mostItems: 1, synthetic: 'elevation' },
  outputs: {
    areas: {
      kind: 'vector',
      fileName: 'areas.gpkg',
      sourceType: 'POLYGON',
      geometry: 'Polygon',
      fields: { value: 'integer' },
    },
  },

  async run({ parameters: { band: name, tolerance, smallest }, scene, gdal, outputs, workFolder, share, signal }) {
    const { band: classes, dataset } = scene.findBand(name);
    const finding = share(0, 0.7);
    const isPlain = tolerance === 0 && smallest === 0;
    const found = gdal.drivers.get('GPKG').create(isPlain ? outputs.areas : `${workFolder}/areas.gpkg`);
    const layer = found.layers.create('areas', dataset.srs, gdal.wkbPolygon);
    layer.fields.add(new gdal.FieldDefn('value', gdal.OFTInteger));
    await gdal.polygonizeAsync({
      src: classes,
      dst: layer,
      mask: classes.getMaskBand() ?? undefined,
      pixValField: 0,
      progress_cb: (fraction) => finding.progress(fraction),
    });
    signal.throwIfAborted();
    if (!isPlain) {
      const kept = gdal.drivers.get('GPKG').create(outputs.areas);
      const areas = kept.layers.create('areas', dataset.srs, gdal.wkbPolygon);
      areas.fields.add(new gdal.FieldDefn('value', gdal.OFTInteger));
      layer.features.forEach((feature) => {
        signal.throwIfAborted();
        const geometry = feature.getGeometry() as InstanceType<typeof gdal.Polygon>;
        if (geometry.getArea() < smallest) return;
        const simple = tolerance === 0 ? geometry : geometry.simplifyPreserveTopology(tolerance);
        const one = new gdal.Feature(areas);
        one.fields.set({ value: feature.fields.get('value') as number });
        one.setGeometry(simple);
        areas.features.add(one);
      });
      kept.close();
    }
    found.close();
    share(0, 1).progress(1);
  },
});
