/** Common names (STAC EO extension) of the bands that a file name like `..._B4.tif` counts. */
const landsat8: Readonly<Record<string, readonly string[]>> = {
  1: ['coastal'], 2: ['blue'], 3: ['green'], 4: ['red'], 5: ['nir', 'nir08'], 6: ['swir16'], 7: ['swir22'],
  8: ['pan'], 9: ['cirrus'], 10: ['lwir11'], 11: ['lwir12'], QA: ['qa'],
};
const sentinel2: Readonly<Record<string, readonly string[]>> = {
  '01': ['coastal'], '02': ['blue'], '03': ['green'], '04': ['red'], '05': ['rededge071'], '06': ['rededge075'],
  '07': ['rededge078'], '08': ['nir'], '8A': ['nir08'], '09': ['nir09'], 10: ['cirrus'], 11: ['swir16'], 12: ['swir22'],
};

/** The band that a file's name counts, `B4` of `l8_B4.tif`; null where it counts none. */
export function bandOfFileName(fileName: string): string | null {
  const match = /(?:^|[^A-Za-z0-9])B(\d{1,2}|8A|QA)(?=[^A-Za-z0-9]|$)(?!.*[^A-Za-z0-9]B(?:\d{1,2}|8A|QA)(?=[^A-Za-z0-9]|$))/i.exec(fileName);
  return match?.[1] ? `B${match[1].toUpperCase()}` : null;
}

/**
 * Names by which each file's band can be asked for: `B4` and `red`. Sentinel-2 writes two digits (`B04`)
 * and `B8A`, Landsat 8 and 9 as few as they need (`B4`) and `BQA`; the scene's files decide together.
 */
export function bandNames(fileNames: readonly string[]): (readonly string[])[] {
  const bands = fileNames.map(bandOfFileName);
  const isSentinel2 = bands.some((band) => band !== null && /^B(0\d|8A)$/.test(band));
  const table = isSentinel2 ? sentinel2 : landsat8;
  return bands.map((band) => (band === null ? [] : [band, ...(table[band.slice(1)] ?? [])]));
}
