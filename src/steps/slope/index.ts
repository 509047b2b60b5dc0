import { command } from '../command.ts';
import { estimateCog } from '../estimate.ts';
import { defineStep, z } from '../step.ts';

/** Steepness of a digital elevation model, by `gdaldem slope` (`gdal-bin`). */
export default defineStep({
  id: 'slope',
  version: '1.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Slope',
  description: 'Steepness of the ground in an elevation raster, in degrees, by the formula of Horn.',
  parameters: z.object({
    scale: z.number().min(0.000001).max(1_000_000).default(1).meta({
      title: 'Scale',
      description: 'Units of height in one unit of the map: 1 for metres on metres, 111120 for metres on degrees.',
    }),
  }),
  input: { description: 'One raster with heights.', mostItems: 1, synthetic: 'elevation' },
  output: {
    fileName: 'slope.tif',
    sourceType: 'HEIGHTMAP',
    bands: [{ description: 'slope', dataType: 'Float32', nodata: -9999 }],
    preview: { ramp: 'gray', range: [0, 45], unit: 'degrees' },
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.12, mostWorkingBytes: 120e6 }),
  run: command({
    argv: [
      ...(['gdaldem', 'slope', '{input}', '{output}', '-s', '{scale}', '-compute_edges'] as const),
      ...['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER'],
    ],
    cog: { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
    progress: 'percent',
  }),
});
