import { band, byGradient, definePixelStep, z } from '../step-kit.ts';

const degrees = 180 / Math.PI;

/** Steepness of a digital elevation model, by Horn's formula. */
export default definePixelStep({
  id: 'slope',
  version: '2.2.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Slope',
  description: 'Steepness of the ground in an elevation raster, in degrees or in per cent, by the formula of Horn.',
  bands: { band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds heights.' }) },
  parameters: z.object({
    unit: z.enum(['degrees', 'percent']).default('degrees').meta({
      title: 'Unit',
      description: 'Degrees from the horizontal, or metres up in a hundred metres along.',
    }),
    scale: z.number().min(0.000001).max(1_000_000).optional().meta({
      title: 'Scale',
      description:
        'Units of height in one unit of the map. Default: derived from the stated units. Heights without a unit have the unit of the map, or metres on a map in degrees.',
    }),
  }),
  input: {
    description: 'An elevation raster (DEM).',
    maxItems: 1,
    synthetic: 'elevation',
    sourceTypes: ['HEIGHTMAP', 'LAND_SUBSIDENCE', 'NETCDF', 'UNKNOWN'],
  },
  output: {
    fileName: 'slope.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'slope', dataType: 'Float32' }],
    preview: ({ unit }: Readonly<Record<string, unknown>>) =>
      unit === 'percent'
        ? { ramp: 'gray', range: [0, 100], unit: 'percent' }
        : { ramp: 'gray', range: [0, 45], unit: 'degrees' },
  },
  reach: 1,
  block: ({ scale, unit }, grid) =>
    byGradient(
      grid,
      { scale },
      unit === 'percent'
        ? (east, north) => 100 * Math.sqrt(east * east + north * north)
        : (east, north) => degrees * Math.atan(Math.sqrt(east * east + north * north)),
    ),
});
