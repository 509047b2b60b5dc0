/** What steps on heights share. */
import type Gdal from 'gdal-async';
import type { SceneBand } from '../raster/scene.ts';

/** The band's raster for gdaldem. Of floats that name no value for gaps, NaN is one: gdaldem would compute it from its neighbours. To be closed where it is another than the band's own. */
export function withGaps(
  gdal: typeof Gdal,
  { dataset, index, band: { noDataValue, dataType } }: SceneBand,
): Gdal.Dataset {
  if (noDataValue !== null || !dataType?.startsWith('Float')) return dataset;
  const view = gdal.drivers.get('VRT').createCopy('', dataset);
  view.bands.get(index).noDataValue = NaN;
  return view;
}
