import { KitError } from '../../contract/kit-error.ts';
import { cutTo, outsideParameter } from '../clip/cut.ts';
import { crs } from '../parameters.ts';
import { defineStep, z } from '../step.ts';
import { placeZones } from '../zones.ts';

/** Cuts a raster to the polygons of a file. A pixel stays if its centre is in one of them. Pixels are neither moved nor resampled. */
export default defineStep({
  id: 'clip-to-features',
  version: '1.2.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Clip to features',
  description:
    'Cuts a raster to the polygons of a file, or to those with a value in a field. What lies outside holds no data.',
  parameters: z.object({
    field: z.string().max(63).default('').meta({
      title: 'Field',
      description: 'The field that chooses polygons by its value. Left empty: all polygons.',
    }),
    value: z.string().max(200).default('').meta({ title: 'Value', description: 'The value of the field.' }),
    crs: crs({
      title: 'Reference system of the features',
      description: 'Only for features that do not name their own, such as a CSV.',
    }).optional(),
    outside: outsideParameter,
  }),
  inputs: {
    raster: {
      title: 'Raster',
      description: 'A georeferenced raster.',
      maxItems: 1,
      synthetic: 'multispectral',
    },
    features: {
      kind: 'vector',
      title: 'Features',
      description: 'Polygons, in any reference system.',
      sourceTypes: ['POLYGON', 'UNKNOWN'],
    },
  },
  output: { fileName: 'clipped.tif', sourceType: 'as-input', bands: 'as-input', preview: { ramp: 'gray' } },

  run: (job) => {
    const { parameters, inputs, gdal, workFolder } = job;
    const { field, value, crs: system } = parameters;
    const known = inputs.features.onlyLayer().fields.getNames();
    if (field !== '' && !known.includes(field))
      throw new KitError(
        'unknown_field',
        `the features have no field ${JSON.stringify(field)}; they have ${known.join(', ')}`,
        { status: 422 },
      );
    return cutTo(job, (source) => {
      const zones = placeZones(gdal, inputs.features.datasets[0]!, source, {
        label: field,
        crs: system,
        folder: workFolder,
      });
      const chosen = zones.filter(({ label }) => field === '' || label === value);
      if (chosen.length === 0)
        throw new KitError('no_feature', `no feature has the value ${JSON.stringify(value)} in the field ${field}`, {
          status: 422,
        });
      return chosen.map(({ rings }) => rings);
    });
  },
});
