/** Only for child processes. Refuses files of which GDAL reads only a part. */
import type gdal from 'gdal-async';
import { SceneError } from './match-band.ts';
import { metadataOf } from './metadata-of.ts';

/** Throws `SceneError` (`not_one_raster`) if a file has several pages, of which GDAL reads the first. */
export function requireOnePage(dataset: gdal.Dataset, fileName: string): void {
  const pages = Object.keys(metadataOf(dataset, 'SUBDATASETS')).filter((key) => key.endsWith('_NAME')).length;
  if (pages < 2) return;
  const example =
    dataset.driver.description === 'GTiff' ? ', for example by gdal_translate GTIFF_DIR:1:FILE one.tif' : '';
  throw new SceneError(
    'not_one_raster',
    `${fileName} holds ${pages} rasters (pages), and the step would read the first only: write the one that you mean to a separate file first${example}`,
    { fileNames: [fileName] },
  );
}

/**
 * Throws `SceneError` (`nodata_differs`) if a band of a netCDF file names values for missing data that differ: GDAL reads one of them, and takes the
 * others for values.
 */
export function requireOneMarker(dataset: gdal.Dataset, fileName: string): void {
  if (dataset.driver.description !== 'netCDF') return;
  dataset.bands.forEach((band) => {
    const { missing_value: text = '' } = metadataOf(band);
    // Several values are written as `{-9999,-8888}`. A text that is no number marks nothing, and NaN is missing in every band.
    const markers = text
      .replace(/[{}]/g, '')
      .split(',')
      .filter((marker) => marker.trim() !== '')
      .map(Number)
      .filter((marker) => !Number.isNaN(marker));
    const { noDataValue, dataType } = band;
    const rounded = (value: number) => (dataType === 'Float32' ? Math.fround(value) : value);
    // GDAL reads integers as unsigned ones that the file may write as signed ones.
    const unsigned = { Byte: 256, UInt16: 65_536, UInt32: 4_294_967_296 }[dataType ?? ''] ?? 0;
    const isOther = (marker: number) =>
      noDataValue === null ||
      (rounded(marker) !== rounded(noDataValue) && !(marker < 0 && marker + unsigned === noDataValue));
    const other = markers.find(isOther);
    if (other === undefined) return;
    throw new SceneError(
      'nodata_differs',
      `${fileName} names several values for missing data (${noDataValue === null ? '' : `${noDataValue} and `}${text}), of which only one can be read; give the variable one value first, for example by cdo setmissval`,
      { fileNames: [fileName] },
    );
  });
}
