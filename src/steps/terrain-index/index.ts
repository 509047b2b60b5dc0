import { band, byNeighbours, definePixelStep, z } from '../step-kit.ts';

/** Each of the nine heights around a pixel, row by row, the pixel itself in the middle. */
const indices = {
  position: (heights: Float64Array): number => {
    let sum = 0;
    for (let i = 0; i < 9; i++) sum += heights[i]!;
    return (9 * heights[4]! - sum) / 8;
  },
  ruggedness: (heights: Float64Array): number => {
    let squares = 0;
    for (let i = 0; i < 9; i++) squares += (heights[i]! - heights[4]!) ** 2;
    return Math.sqrt(squares);
  },
  roughness: (heights: Float64Array): number => {
    let low = heights[4]!;
    let high = low;
    for (let i = 0; i < 9; i++) {
      low = Math.min(low, heights[i]!);
      high = Math.max(high, heights[i]!);
    }
    return high - low;
  },
};

/** Indices of the heights around a pixel: topographic position (TPI), ruggedness (TRI) and roughness. */
export default definePixelStep({
  id: 'terrain-index',
  version: '1.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Terrain index',
  description:
    'Compares each height with the eight around it: topographic position (TPI), ruggedness (TRI, Riley 1999) or roughness.',
  bands: { band: band({ default: '1', title: 'Band', description: 'Name or number of the band that holds heights.' }) },
  parameters: z.object({
    index: z.enum(['position', 'ruggedness', 'roughness']).default('position').meta({
      title: 'Index',
      description:
        'position: height above the mean of the eight. ruggedness: root of the sum of the squared differences. roughness: the highest less the lowest of the nine.',
    }),
  }),
  input: {
    description: 'An elevation raster (DEM).',
    maxItems: 1,
    synthetic: 'elevation',
    sourceTypes: ['HEIGHTMAP', 'LAND_SUBSIDENCE', 'NETCDF', 'UNKNOWN'],
  },
  output: {
    fileName: 'terrain-index.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'terrain index', dataType: 'Float32' }],
    preview: { ramp: 'gray' },
  },
  reach: 1,
  block: ({ index }, grid) => byNeighbours(grid, indices[index]),
});
