/** What a synthetic input shows: bands of a satellite scene, or heights. */
export type SyntheticKind = 'multispectral' | 'elevation';

/** Bands of the synthetic scenes, in their order. */
export const syntheticBands = {
  multispectral: ['blue', 'green', 'red', 'nir', 'swir16'],
  elevation: ['elevation'],
  radar: ['VV'],
} as const;
