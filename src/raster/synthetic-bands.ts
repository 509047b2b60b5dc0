/** Content of a synthetic input: bands of a satellite scene; coarse colour bands with a fine panchromatic band; or heights. */
export type SyntheticKind = 'multispectral' | 'panchromatic' | 'elevation';

/** Bands of the synthetic scenes, in their order. */
export const syntheticBands = {
  multispectral: ['blue', 'green', 'red', 'nir', 'swir16'],
  panchromatic: ['blue', 'green', 'red', 'pan'],
  elevation: ['elevation'],
  radar: ['VV'],
} as const;
