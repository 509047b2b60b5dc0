/** A spectral index: what it is computed by, over the common names of bands (STAC EO extension), and where it comes from. */
export interface SpectralIndex {
  readonly name: string;
  readonly formula: string;
  readonly reference: string;
  /** It needs reflectance from 0 to 1; the others are the same for any factor, as long as there is no offset. */
  readonly needsReflectance?: boolean;
}

export const spectralIndices = {
  NDVI: { name: 'Vegetation', formula: '(nir - red) / (nir + red)', reference: 'Rouse et al. 1974' },
  GNDVI: { name: 'Vegetation, by green', formula: '(nir - green) / (nir + green)', reference: 'Gitelson et al. 1996' },
  EVI: {
    name: 'Vegetation, enhanced',
    formula: '2.5 * (nir - red) / (nir + 6 * red - 7.5 * blue + 1)',
    reference: 'Huete et al. 2002',
    needsReflectance: true,
  },
  EVI2: {
    name: 'Vegetation, enhanced, of two bands',
    formula: '2.5 * (nir - red) / (nir + 2.4 * red + 1)',
    reference: 'Jiang et al. 2008',
    needsReflectance: true,
  },
  SAVI: {
    name: 'Vegetation on bare soil',
    formula: '1.5 * (nir - red) / (nir + red + 0.5)',
    reference: 'Huete 1988',
    needsReflectance: true,
  },
  MSAVI: {
    name: 'Vegetation on bare soil, modified',
    formula: '(2 * nir + 1 - sqrt((2 * nir + 1) ^ 2 - 8 * (nir - red))) / 2',
    reference: 'Qi et al. 1994',
    needsReflectance: true,
  },
  NDWI: { name: 'Open water', formula: '(green - nir) / (green + nir)', reference: 'McFeeters 1996' },
  MNDWI: { name: 'Open water, modified', formula: '(green - swir16) / (green + swir16)', reference: 'Xu 2006' },
  NDMI: { name: 'Moisture of vegetation', formula: '(nir - swir16) / (nir + swir16)', reference: 'Gao 1996' },
  NBR: { name: 'Burnt areas', formula: '(nir - swir22) / (nir + swir22)', reference: 'Key and Benson 2006' },
  NDSI: { name: 'Snow', formula: '(green - swir16) / (green + swir16)', reference: 'Hall et al. 1995' },
  NDBI: { name: 'Built-up areas', formula: '(swir16 - nir) / (swir16 + nir)', reference: 'Zha et al. 2003' },
  BSI: {
    name: 'Bare soil',
    formula: '((swir16 + red) - (nir + blue)) / ((swir16 + red) + (nir + blue))',
    reference: 'Rikimaru et al. 2002',
  },
} as const satisfies Readonly<Record<string, SpectralIndex>>;

export type SpectralIndexId = keyof typeof spectralIndices;
export const spectralIndexIds = Object.keys(spectralIndices) as [SpectralIndexId, ...SpectralIndexId[]];
