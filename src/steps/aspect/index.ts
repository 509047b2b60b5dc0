import { band, byGradient, definePixelStep } from '../step-kit.ts';

const degrees = 180 / Math.PI;

/** Aspect of a digital elevation model, by Horn's formula. */
export default definePixelStep({
  id: 'aspect',
  version: '2.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Aspect',
  description: 'Where the slopes of an elevation raster face, in degrees clockwise from north. Level ground has none.',
  bands: { band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds heights.' }) },
  input: {
    description: 'An elevation raster (DEM).',
    maxItems: 1,
    synthetic: 'elevation',
    sourceTypes: ['HEIGHTMAP', 'LAND_SUBSIDENCE', 'NETCDF', 'UNKNOWN'],
  },
  output: {
    fileName: 'aspect.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'aspect', dataType: 'Float32' }],
    preview: { ramp: 'compass', range: [0, 360], unit: 'degrees' },
    overviews: 'NEAREST',
  },
  reach: 1,
  block: (_parameters, grid) =>
    byGradient(grid, {}, (east, north) => {
      if (east === 0 && north === 0) return NaN;
      // A slope faces downhill, against the gradient.
      const angle = degrees * Math.atan2(-east, -north);
      return angle < 0 ? Math.fround(angle + 360) % 360 : angle;
    }),
});
