/** What a synthetic input shows: bands of a satellite scene, its colours in coarse pixels beside a panchromatic band in fine ones, or heights. */
export type SyntheticKind = 'multispectral' | 'panchromatic' | 'elevation';

/** Bands of the synthetic scenes, in their order. */
export const syntheticBands = {
  multispectral: ['blue', 'green', 'red', 'nir', 'swir16'],
  panchromatic: ['blue', 'green', 'red', 'pan'],
  elevation: ['elevation'],
  radar: ['VV'],
} as const;
