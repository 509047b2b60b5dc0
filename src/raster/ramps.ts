import { keysOf } from '../contract/keys.ts';

/** Colours from low to high. */
export const ramps = {
  gray: [
    [0, 0, 0],
    [255, 255, 255],
  ],
  rdylgn: [
    [165, 0, 38],
    [244, 109, 67],
    [254, 224, 139],
    [166, 217, 106],
    [26, 152, 80],
    [0, 104, 55],
  ],
  // The first and last colour are equal, because 0° and 360° are the same direction.
  compass: [
    [230, 75, 60],
    [240, 200, 60],
    [70, 160, 80],
    [60, 110, 200],
    [230, 75, 60],
  ],
  drywet: [
    [140, 81, 10],
    [246, 232, 195],
    [199, 234, 229],
    [1, 102, 94],
    [8, 48, 107],
  ],
} as const satisfies Record<string, readonly (readonly [number, number, number])[]>;

export const rampNames = keysOf(ramps);
