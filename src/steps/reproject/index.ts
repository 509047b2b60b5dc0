import { crs, resampling } from '../parameters.ts';
import { defineStep, z } from '../step.ts';

/** A raster in another coordinate reference system, or with pixels of another size. */
export default defineStep({
  id: 'reproject',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Reproject and resample',
  description:
    'Brings a raster into another coordinate reference system, with pixels of the size that suits it or that you say.',
  parameters: z.object({
    crs: crs({ default: 'EPSG:4326', title: 'Reference system', description: 'Its EPSG code.' }),
    resampling: resampling({
      title: 'Resampling',
      description: 'near for classes, bilinear or cubic for measurements.',
    }),
    pixelSize: z
      .number()
      .min(1e-9)
      .max(1e6)
      .optional()
      .meta({ title: 'Pixel size', description: 'In units of the reference system. Left out: as fine as the input.' }),
  }),
  input: { description: 'One raster that says where it lies.', mostItems: 1, synthetic: 'multispectral' },
  output: { fileName: 'reprojected.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },

  async run({ parameters, scene, gdal, raster, outputPath, workFolder, share, signal }) {
    const source = scene.onlyRaster();
    const warping = share(0, 0.6);
    const size =
      parameters.pixelSize === undefined ? [] : ['-tr', parameters.pixelSize, parameters.pixelSize].map(String);
    const warped = await gdal.warpAsync(
      `${workFolder}/warped.tif`,
      null,
      [source],
      [
        ...['-t_srs', parameters.crs, '-r', parameters.resampling, ...size],
        ...['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BIGTIFF=IF_SAFER', '-multi', '-wo', 'NUM_THREADS=ALL_CPUS'],
      ],
      { progress_cb: (fraction) => warping.progress(fraction) },
    );
    signal.throwIfAborted();
    raster.writeCog(
      warped,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: parameters.resampling === 'near' ? 'NEAREST' : 'AVERAGE' },
      share(0.6, 1),
    );
    warped.close();
  },
});
