/** Copies of bands for GDAL algorithms, which ignore masks, scales and signed bytes. */
import type Gdal from 'gdal-async';
import type { BandReader } from '../raster/band-reader.ts';
import type { JobContext } from '../child/in-child.ts';
import { walkBands } from '../raster/block-walk.ts';
import { createRaster, gridOf } from '../raster/cog.ts';

/** A value that no height reaches. */
const nodata = -1e300;

/** Copies the physical values of a band as Float64, with nodata for missing values. The caller closes the copy. */
export function withoutMask(
  reader: BandReader,
  dataset: Gdal.Dataset,
  folder: string,
  context: JobContext,
): Promise<Gdal.Dataset> {
  return createRaster(
    {
      path: `${folder}/plain.tif`,
      grid: gridOf(dataset),
      dataType: 'Float64',
      bands: [{ description: 'values', nodata }],
    },
    (target) =>
      walkBands(
        { inputs: [reader], outputs: [target.bands.get(1)] },
        ([values], [out], { width, rows }) => {
          for (let i = 0; i < width * rows; i++) out![i] = Number.isFinite(values![i]) ? values![i]! : nodata;
        },
        context,
      ),
  );
}
