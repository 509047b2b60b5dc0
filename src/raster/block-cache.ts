/** Only for child processes: loads GDAL. */
import gdal from 'gdal-async';

const mebibyte = 1024 ** 2;
const leastBytes = 16 * mebibyte;
const maxBytes = 128 * mebibyte;
/** Bytes of a sample, from the number at the end of GDAL's type name. */
const sampleBytes = (type: string | null) => Number(/(\d+)$/.exec(type ?? '')?.[1] ?? 8) / 8;

/**
 * Lets GDAL keep as many blocks as a walk over these rasters comes back to: a row of blocks of every band, twice. More is memory
 * that nobody reads again. Only before the first pixel is read; what is opened later shares it.
 */
export function fitBlockCache(datasets: readonly gdal.Dataset[]): void {
  let bytes = 0;
  for (const dataset of datasets)
    dataset.bands.forEach(({ blockSize, dataType }) => {
      bytes += dataset.rasterSize.x * blockSize.y * sampleBytes(dataType);
    });
  const wanted = Math.min(maxBytes, Math.max(leastBytes, 2 * bytes));
  gdal.config.set('GDAL_CACHEMAX', String(Math.ceil(wanted / mebibyte)));
}
