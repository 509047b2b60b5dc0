/** Steps with several outputs, and steps that leave others than they declare. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { command, defineStep, z, type StepJob, type VectorOutput } from '../../src/steps/index.ts';

const geoJson = (features: readonly object[]) =>
  JSON.stringify({ type: 'FeatureCollection', features: features.map((one) => ({ type: 'Feature', ...one })) });
const square = { type: 'Polygon', coordinates: [[[0, 0], [1, 0], [1, 1], [0, 0]]] }; // oxfmt-ignore
const row = { name: 'a', count: 3, share: 0.5, isBig: true, day: '2024-06-01' };
const fields = { name: 'string', count: 'integer', share: 'real', isBig: 'boolean', day: 'date' } as const;
const input = { description: 'anything', synthetic: 'elevation' } as const;
const named = (id: string) => ({ id, version: '1.0.0', title: id, description: id, input, parameters: z.object({}) });

function writeRaster({ scene, raster, share }: Pick<StepJob<never>, 'scene' | 'raster' | 'share'>, path: string): void {
  raster.writeCog(
    scene.onlyRaster(),
    path,
    { compression: 'NONE', blockSize: 256, resampling: 'NEAREST' },
    share(0, 1),
  );
}

const zones = {
  kind: 'vector',
  fileName: 'zones.geojson',
  sourceType: 'POLYGON',
  geometry: 'Polygon',
  fields,
} as const satisfies VectorOutput;

const all = defineStep({
  ...named('several'),
  parameters: z.object({ withNotes: z.boolean().default(false).meta({ title: 'Notes', description: 'With notes.' }) }),
  outputs: {
    heights: {
      fileName: 'heights.tif',
      sourceType: 'HEIGHTMAP',
      bands: 'as-input',
      preview: { ramp: 'gray', unit: 'm' },
    },
    zones,
    table: {
      kind: 'vector',
      fileName: 'table.csv',
      sourceType: 'UNKNOWN',
      geometry: 'None',
      fields: { zone: 'string', mean: 'real' },
    },
    notes: { kind: 'file', fileName: 'notes.txt', sourceType: 'UNKNOWN', optional: true },
  },
  async run(job) {
    writeRaster(job, job.outputs.heights);
    writeFileSync(job.outputs.zones, geoJson([{ properties: row, geometry: square }]));
    writeFileSync(job.outputs.table, 'zone,mean\na,1.5\n');
    if (job.parameters.withNotes) writeFileSync(job.outputs.notes, 'all is well');
  },
});

function leaving(id: string, text: string | null, changes: Partial<VectorOutput> = {}) {
  return defineStep({
    ...named(id),
    outputs: { zones: { ...zones, ...changes } },
    run: async ({ outputs }) => {
      if (text !== null) writeFileSync(outputs.zones, text);
    },
  });
}
const feature = (properties: object, geometry: object | null = square) => geoJson([{ properties, geometry }]);

export default defineApp({
  module: import.meta.url,
  id: 'several-outputs',
  name: 'several-outputs',
  description: 'Steps of a test.',
  steps: [
    all,
    leaving('well', feature(row)),
    leaving('dated', feature({ on: '2024-01-01', at: '2024-01-01T10:30:00Z', name: '2024-01-01' }), {
      fields: { on: 'date', at: 'datetime', name: 'string' },
    }),
    defineStep({
      ...named('dated-package'),
      outputs: {
        zones: {
          kind: 'vector',
          fileName: 'zones.gpkg',
          geometry: 'Point',
          fields: { on: 'date', at: 'datetime' },
        },
      },
      run: async ({ gdal, outputs }) => {
        const made = gdal.drivers.get('GPKG').create(outputs.zones);
        const layer = made.layers.create('zones', gdal.SpatialReference.fromEPSG(4326), gdal.wkbPoint);
        layer.fields.add([new gdal.FieldDefn('on', gdal.OFTDate), new gdal.FieldDefn('at', gdal.OFTDateTime)]);
        const point = new gdal.Feature(layer);
        point.setGeometry(new gdal.Point(1, 2));
        layer.features.add(point);
        made.close();
      },
    }),
    leaving('without-features', geoJson([])),
    leaving('nothing', null),
    leaving('no-features', 'these are none'),
    leaving('other-geometry', feature(row, { type: 'Point', coordinates: [0, 0] })),
    leaving('no-geometry', feature(row, null)),
    leaving('field-missing', feature({ ...row, count: undefined })),
    leaving('field-too-many', feature({ ...row, secret: 1 })),
    leaving('field-of-another-type', feature({ ...row, count: 'three' })),
    defineStep({
      ...named('empty-file'),
      outputs: { notes: { kind: 'file', fileName: 'notes.txt', sourceType: 'UNKNOWN' } },
      run: async ({ outputs }) => writeFileSync(outputs.notes, ''),
    }),
    defineStep({
      ...named('link'),
      outputs: { notes: { kind: 'file', fileName: 'notes.txt', sourceType: 'UNKNOWN' } },
      run: async ({ outputs, workFolder }) => {
        const { symlinkSync } = await import('node:fs');
        writeFileSync(join(workFolder, 'target'), 'x');
        symlinkSync(join(workFolder, 'target'), outputs.notes);
      },
    }),
    defineStep({
      ...named('by-command'),
      outputs: {
        first: { kind: 'file', fileName: 'first.txt', sourceType: 'UNKNOWN' },
        second: { kind: 'file', fileName: 'second.txt', sourceType: 'UNKNOWN' },
      },
      run: command({
        argv: [
          'python3',
          '-c',
          'import marketplace_step as m, sys; open(sys.argv[1], "w").write("1"); open(m.load().outputs["first"], "w").write("2")',
          '{second}',
          '{job}',
        ],
      }),
    }),
  ],
});
