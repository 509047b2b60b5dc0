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

/** Groups of satellites that number their bands differently. `other`: one whose bands have no common names here. */
export type Sensor = 'landsat-mss' | 'landsat-4-7' | 'landsat-8-9' | 'sentinel-2' | 'other';
const tables: Readonly<Record<Sensor, Bands>> = {
  // Landsat 1 to 3 and 4 to 5 count theirs differently: none has a common name here.
  'landsat-mss': {},
  'landsat-4-7': landsat4to7,
  'landsat-8-9': landsat8,
  'sentinel-2': sentinel2,
  other: {},
};

/** Sensors by words in file names, which begin the name or follow a sign that is neither a letter nor a digit. The first match counts. */
const sensorWords: readonly (readonly [Sensor, RegExp])[] = [
  // Harmonized Landsat and Sentinel-2, whose Landsat files have two digits too.
  ['landsat-8-9', /(?:^|[^a-z0-9])HLS\.L30\./i],
  ['sentinel-2', /(?:^|[^a-z0-9])HLS\.S30\./i],
  ['landsat-mss', /(?:^|[^a-z0-9])(?:LM0?[1-5]|landsat-?[1-3](?![0-9]))/i],
  ['landsat-4-7', /(?:^|[^a-z0-9])(?:L[ET]0?[4-7]|landsat-?[4-7](?![0-9]))/i],
  ['landsat-8-9', /(?:^|[^a-z0-9])(?:L[CO]0?[89]|L[89](?![0-9])|landsat-?[89](?![0-9]))/i],
  ['sentinel-2', /(?:^|[^a-z0-9])(?:S2(?![0-9])|sentinel-?2|T\d\d[A-Z]{3}_)/i],
  // Advanced Land Imager and Hyperion, MODIS, VIIRS, ASTER.
  ['other', /(?:^|[^a-z0-9])(?:EO1[AH]|M[OYC]D\d\d|V(?:NP|J[12])\d\d|AST_)/i],
  // Himawari, GOES, Sentinel-3, PROBA-V, EnMAP, PRISMA, VENµS.
  ['other', /(?:^|[^a-z0-9])(?:HS_H\d\d|himawari|OR_ABI|GOES-?\d|S3[AB]|sentinel-?3|PROBAV|ENMAP|PRS_L|VENUS)/i],
  // WorldView, GeoEye, QuickBird, IKONOS, RapidEye, Planet, SPOT, Pléiades, KOMPSAT, CBERS, Gaofen, ZY-3, SuperView, ALOS, Resourcesat, Formosat.
  [
    'other',
    /(?:^|[^a-z0-9])(?:WV\d\d|worldview|GE01|geoeye|QB02|quickbird|ikonos|rapideye|PSScene|planetscope|skysat|SPOT-?\d|pleiades|PHR\d|PNEO|KOMPSAT|KM\d|CBERS|amazonia|GF-?\d|gaofen|ZY-?3|SV\d|superview|ALAV|AVNIR|ALOS|LISS|AWIFS|formosat|FS\d)/i,
  ],
];

/**
 * Finds the sensor by the file names: by a word that one of them has (`LE07_...`, `clip_LT5...`, `S2A_...`), else by the digits. Sentinel-2 writes two
 * (`B04`) and `B8A`; Landsat writes as few digits as it needs. Default: the sensor of Landsat 8.
 */
export const sensorOfFileNames = (fileNames: readonly string[]): Sensor => statedSensor(fileNames) ?? 'landsat-8-9';

/** The sensor that the file names state, by a word or by their digits. Null if they do not. */
export function statedSensor(fileNames: readonly string[]): Sensor | null {
  const [byWord] = sensorWords.find(([, word]) => fileNames.some((name) => word.test(name))) ?? [];
  if (byWord) return byWord;
  return fileNames.some((name) => /^B(0\d|8A)$/.test(bandOfFileName(name) ?? '')) ? 'sentinel-2' : null;
}

/** Names by which each file's band can be asked for: `B4` and `red`. The scene's files decide together. */
export function bandNames(fileNames: readonly string[], sensor = sensorOfFileNames(fileNames)): (readonly string[])[] {
  const table = tables[sensor];
  return fileNames.map((name) => {
    const band = bandOfFileName(name);
    if (band === null) return [];
    // Programs write a number with one digit or with two, whatever the sensor's own names have.
    const number = /^\d+$/.test(band.slice(1)) ? String(Number(band.slice(1))) : band.slice(1);
    return [band, ...(table[number] ?? table[number.padStart(2, '0')] ?? [])];
  });
}
