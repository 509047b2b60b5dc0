import { defineStep, z } from '../../../../src/steps/step.ts';

/** Thirds of a raster by its values, as classes with names and colours. */
export default defineStep({
  id: 'classify',
  version: '1.0.0',
  title: 'Classify',
  description: 'Low, middle and high.',
  parameters: z.object({}),
  input: { description: 'One raster.', sourceTypes: ['HEIGHTMAP'], synthetic: 'elevation' },
  output: {
    fileName: 'classes.tif',
    sourceType: 'HEIGHTMAP',
    bands: [{ description: 'class', dataType: 'Byte', nodata: 255 }],
    preview: {
      ramp: 'gray',
      classes: [
        { value: 0, name: 'low', color: [0, 114, 178] },
        { value: 1, name: 'middle', color: [230, 159, 0] },
        { value: 2, name: 'high', color: [0, 158, 115] },
        { value: 3, name: 'never', color: [1, 2, 3] },
      ],
    },
  },
  async run({ scene, raster, outputPath, workFolder, share }) {
    const source = scene.onlyRaster();
    const { width } = raster.gridOf(source);
    const classes = await raster.createRaster(
      {
        path: `${workFolder}/classes.tif`,
        grid: raster.gridOf(source),
        dataType: 'Byte',
        bands: [{ description: 'class', nodata: 255 }],
      },
      (target) =>
        raster.walkStrips(
          [source.bands.get(1)],
          target.bands.get(1),
          ([values = []], out, count) => {
            for (let i = 0; i < count; i++) out[i] = Math.min(2, Math.floor((values[i]! / width) * 3));
          },
          share(0, 0.5),
        ),
    );
    raster.writeCog(
      classes,
      outputPath,
      { compression: 'DEFLATE', blockSize: 256, resampling: 'NEAREST' },
      share(0.5, 1),
    );
    classes.close();
  },
});
