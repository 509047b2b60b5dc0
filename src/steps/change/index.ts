import { band, definePixelStep, z } from '../step-kit.ts';

const measures = {
  difference: (before: number, after: number) => after - before,
  relative: (before: number, after: number) => (after - before) / Math.abs(before),
  normalized: (before: number, after: number) => (after - before) / (after + before),
} as const;

const scene = { synthetic: 'multispectral' } as const;

/** The change of a band between two dates, as Float32. No data where either has none, or no finite number comes out. */
export default definePixelStep({
  id: 'change',
  version: '2.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Change',
  description:
    'What has changed in one band between two scenes on the same grid: after minus before, or a share of it.',
  bands: {
    band: band({
      default: 'nir',
      title: 'Band',
      description: 'Common name, name or number of the band in both scenes.',
    }),
  },
  ofEachInput: true,
  parameters: z.object({
    measure: z.enum(['difference', 'relative', 'normalized']).default('difference').meta({
      title: 'Measure',
      description:
        '`difference`: after - before. `relative`: (after - before) / |before|, so that its sign is that of the difference. `normalized`: (after - before) / (after + before).',
    }),
  }),
  inputs: {
    before: { ...scene, title: 'Before', description: 'The earlier scene.' },
    after: { ...scene, title: 'After', description: 'The later scene, on the same grid.' },
  },
  output: {
    fileName: 'change.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'change', dataType: 'Float32' }],
    preview: { ramp: 'rdylgn', centre: 0 },
  },
  pixel: ({ measure }) => measures[measure],
});
