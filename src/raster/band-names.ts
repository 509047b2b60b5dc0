type Bands = Readonly<Record<string, readonly string[]>>;

/** Common names (STAC EO extension) of the bands that a file name like `..._B4.tif` counts. */
const landsat8: Bands = {
  1: ['coastal'],
  2: ['blue'],
  3: ['green'],
  4: ['red'],
  5: ['nir', 'nir08'],
  6: ['swir16'],
  7: ['swir22'],
  8: ['pan'],
  9: ['cirrus'],
  10: ['lwir11'],
  11: ['lwir12'],
  QA: ['qa'],
};
/** Bands of the Thematic Mappers on Landsat 4 to 7. */
const landsat4to7: Bands = {
  1: ['blue'],
  2: ['green'],
  3: ['red'],
  4: ['nir', 'nir08'],
  5: ['swir16'],
  6: ['lwir'],
  7: ['swir22'],
  8: ['pan'],
  QA: ['qa'],
};
const sentinel2: Bands = {
  '01': ['coastal'],
  '02': ['blue'],
  '03': ['green'],
  '04': ['red'],
  '05': ['rededge071'],
  '06': ['rededge075'],
  '07': ['rededge078'],
  '08': ['nir'],
  '8A': ['nir08'],
  '09': ['nir09'],
  10: ['cirrus'],
  11: ['swir16'],
  12: ['swir22'],
};

/** Bands that USGS and ESA identify by a word: `..._QA_PIXEL.TIF`, `..._ST_B10.TIF`, `..._SCL_20m.jp2`. */
const words = /(?:^|[^A-Za-z0-9])(QA_PIXEL|QA_RADSAT|QA_AEROSOL|ST_QA|SCL|QA60|AOT|WVP|TCI)(?=[^A-Za-z0-9]|$)/i;

/** The band that a file's name counts, `B4` of `l8_B4.tif`; null where it counts none. */
export function bandOfFileName(fileName: string): string | null {
  const word = words.exec(fileName)?.[1]?.toUpperCase();
  if (word !== undefined) return word;
  const match =
    /(?:^|[^A-Za-z0-9])B(\d{1,2}|8A|QA)(?=[^A-Za-z0-9]|$)(?!.*[^A-Za-z0-9]B(?:\d{1,2}|8A|QA)(?=[^A-Za-z0-9]|$))/i.exec(
      fileName,
    );
  return match?.[1] ? `B${match[1].toUpperCase()}` : null;
}

/** Satellites that count their bands each in their own way. */
export type Sensor = 'landsat-mss' | 'landsat-4-7' | 'landsat-8-9' | 'sentinel-2';
const tables: Readonly<Record<Sensor, Bands>> = {
  // Landsat 1 to 3 and 4 to 5 count theirs differently: none has a common name here.
  'landsat-mss': {},
  'landsat-4-7': landsat4to7,
  'landsat-8-9': landsat8,
  'sentinel-2': sentinel2,
};

/**
 * Finds the sensor by the file names. Sentinel-2 writes two digits (`B04`) and `B8A`; Landsat writes as few digits as
 * it needs. A Landsat scene's name begins with sensor and satellite (`LE07_...`, `LT5...`). Default: the sensor of
 * Landsat 8.
 */
export function sensorOfFileNames(fileNames: readonly string[]): Sensor {
  if (fileNames.some((name) => /^B(0\d|8A)$/.test(bandOfFileName(name) ?? ''))) return 'sentinel-2';
  if (fileNames.some((name) => /^LM0?[1-5]/i.test(name))) return 'landsat-mss';
  return fileNames.some((name) => /^L[ET]0?[4-7]/i.test(name)) ? 'landsat-4-7' : 'landsat-8-9';
}

/** Names by which each file's band can be asked for: `B4` and `red`. The scene's files decide together. */
export function bandNames(fileNames: readonly string[], sensor = sensorOfFileNames(fileNames)): (readonly string[])[] {
  const table = tables[sensor];
  return fileNames.map((name) => {
    const band = bandOfFileName(name);
    return band === null ? [] : [band, ...(table[band.slice(1)] ?? [])];
  });
}
