import type { PreviewStyle } from '../step-kit.ts';

/** A spectral index: what it is computed by, over the common names of bands (STAC EO extension), and where it comes from. */
export interface SpectralIndex {
  readonly name: string;
  readonly formula: string;
  readonly reference: string;
  /** Values drawn with the first and the last colour. Default: the 2nd and 98th percentile. */
  readonly range?: readonly [number, number];
  /** Default `rdylgn`: high values are green. */
  readonly ramp?: PreviewStyle['ramp'];
}

/** Indices by their short name, and the constants that their formulas name. */
export interface IndexCatalogue {
  readonly indices: Readonly<Record<string, SpectralIndex>>;
  readonly constants: Readonly<Record<string, IndexConstant>>;
}

export interface IndexConstant {
  readonly description: string;
  /** Null: a run must give the constant. */
  readonly default: number | null;
}

const vegetation = { range: [-0.5, 0.9] } as const;
/** Water, snow and moisture: high values are blue. */
const wet = { ramp: 'drywet', range: [-0.8, 0.8] } as const;
/** Built-up areas and bare soil: high values are bright. */
const bare = { ramp: 'gray', range: [-0.6, 0.6] } as const;

/** The spectral indices of the kit, by name. */
export const spectralIndices = {
  NDVI: { name: 'Vegetation', formula: '(nir - red) / (nir + red)', reference: 'Rouse et al. 1974', ...vegetation },
  GNDVI: {
    name: 'Vegetation, by green',
    formula: '(nir - green) / (nir + green)',
    reference: 'Gitelson et al. 1996',
    ...vegetation,
  },
  EVI: {
    name: 'Vegetation, enhanced',
    formula: '2.5 * (nir - red) / (nir + 6 * red - 7.5 * blue + 1)',
    reference: 'Huete et al. 2002',
    ...vegetation,
  },
  EVI2: {
    name: 'Vegetation, enhanced, of two bands',
    formula: '2.5 * (nir - red) / (nir + 2.4 * red + 1)',
    reference: 'Jiang et al. 2008',
    ...vegetation,
  },
  SAVI: {
    name: 'Vegetation on bare soil',
    formula: '1.5 * (nir - red) / (nir + red + 0.5)',
    reference: 'Huete 1988',
    ...vegetation,
  },
  MSAVI: {
    name: 'Vegetation on bare soil, modified',
    formula: '(2 * nir + 1 - sqrt((2 * nir + 1) ^ 2 - 8 * (nir - red))) / 2',
    reference: 'Qi et al. 1994',
    ...vegetation,
  },
  NDWI: { name: 'Open water', formula: '(green - nir) / (green + nir)', reference: 'McFeeters 1996', ...wet },
  MNDWI: { name: 'Open water, modified', formula: '(green - swir16) / (green + swir16)', reference: 'Xu 2006', ...wet },
  NDMI: { name: 'Moisture of vegetation', formula: '(nir - swir16) / (nir + swir16)', reference: 'Gao 1996', ...wet },
  NBR: {
    name: 'Burnt areas',
    formula: '(nir - swir22) / (nir + swir22)',
    reference: 'Key and Benson 2006',
    ...vegetation,
  },
  NDSI: { name: 'Snow', formula: '(green - swir16) / (green + swir16)', reference: 'Hall et al. 1995', ...wet },
  NDBI: { name: 'Built-up areas', formula: '(swir16 - nir) / (swir16 + nir)', reference: 'Zha et al. 2003', ...bare },
  BSI: {
    name: 'Bare soil',
    formula: '((swir16 + red) - (nir + blue)) / ((swir16 + red) + (nir + blue))',
    reference: 'Rikimaru et al. 2002',
    ...bare,
  },
} as const satisfies Readonly<Record<string, SpectralIndex>>;
