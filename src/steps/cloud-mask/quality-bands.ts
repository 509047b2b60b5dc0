/** Meaning of the bits and values of a known quality band. Of a confidence of two bits, the higher bit marks medium and high. */
export interface QualityBand {
  /** Bits that mark clouds, cloud shadows and pixels without data. Without them, only the user knows. */
  readonly bits?: string;
  /** Values that mark them, in a band of classes. */
  readonly values?: string;
  /** Content of a band that marks no clouds. */
  readonly holds?: string;
  /** True if bits mark that content, so that the user's own bits make sense. Default: false. */
  readonly hasBits?: boolean;
}

/** Known quality bands, with the source of each. */
export const qualityBands = {
  // https://www.usgs.gov/landsat-missions/landsat-collection-2-quality-assessment-bands: fill, dilated cloud, cirrus, cloud, shadow.
  QA_PIXEL: { bits: '0,1,2,3,4' },
  // https://www.usgs.gov/landsat-missions/landsat-collection-1-level-1-quality-assessment-band: fill, cloud, shadow (bits 7 and 8), cirrus (11 and 12).
  BQA: { bits: '0,4,8,12' },
  // Landsat Collection 1 surface reflectance (USGS LSDS-1368): fill, shadow, cloud, cirrus (bits 8 and 9). Bit 1 is clear ground.
  PIXEL_QA: { bits: '0,3,5,9' },
  // Sentinel-2, https://developers.google.com/earth-engine/datasets/catalog/COPERNICUS_S2_SR_HARMONIZED: opaque clouds, cirrus.
  QA60: { bits: '10,11' },
  // Sentinel-2, Level-2A Algorithm Theoretical Basis Document: no data, defective, shadow, cloud of medium and high probability, cirrus.
  SCL: { values: '0,1,3,8,9,10' },
  // https://www.usgs.gov/landsat-missions/landsat-collection-2-quality-assessment-bands
  QA_RADSAT: { holds: 'saturated pixels', hasBits: true },
  QA_AEROSOL: { holds: 'levels of aerosol', hasBits: true },
  ST_QA: { holds: 'the uncertainty of temperatures' },
  AOT: { holds: 'aerosol optical thickness' },
  WVP: { holds: 'water vapour' },
} as const satisfies Readonly<Record<string, QualityBand>>;

/** The known quality band among the names of a band, such as `LC08_L1TP_193024_BQA`; null if there is none. */
export function qualityBandOf(names: readonly string[]): (QualityBand & { readonly name: string }) | null {
  const known: readonly (readonly [string, QualityBand])[] = Object.entries(qualityBands);
  // The longest name is the most exact: PIXEL_QA is no QA.
  for (const [name, meaning] of known.toSorted(([a], [b]) => b.length - a.length))
    if (names.some((bandName) => new RegExp(`(?:^|[^A-Z0-9])${name}$`).test(bandName.toUpperCase())))
      return { name, ...meaning };
  return null;
}
