import { defineStep, z } from '../../../../src/steps/step.ts';

export default defineStep({
  id: 'multiply',
  version: '1.0.0',
  title: 'Multiply',
  description: 'Multiplies every value.',
  parameters: z.object({
    factor: z.number().min(-100).max(100).meta({ title: 'Factor', description: 'What values are multiplied by.' }),
  }),
  input: { description: 'One raster.', synthetic: 'elevation' },
  output: {
    fileName: 'multiplied.tif',
    sourceType: 'HEIGHTMAP',
    bands: [{ description: 'product', dataType: 'Float32' }],
    preview: { ramp: 'gray', unit: 'm' },
  },
  async run({ parameters, scene, raster, outputPath, workFolder, share }) {
    const source = scene.onlyRaster();
    const product = await raster.createRaster(
      {
        path: `${workFolder}/product.tif`,
        grid: raster.gridOf(source),
        dataType: 'Float32',
        bands: [{ description: 'product' }],
      },
      (target) =>
        raster.walkStrips(
          [source.bands.get(1)],
          target.bands.get(1),
          ([values = []], out, count) => {
            for (let i = 0; i < count; i++) out[i] = values[i]! * parameters.factor;
          },
          share(0, 0.5),
        ),
    );
    raster.writeCog(
      product,
      outputPath,
      { compression: 'DEFLATE', blockSize: 256, resampling: 'NEAREST' },
      share(0.5, 1),
    );
    product.close();
  },
});
