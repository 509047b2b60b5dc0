import { z } from '../step-kit.ts';

/** The parameter `outside` of the steps that cut. */
export const outsideParameter = z.number().min(-1e9).max(1e9).optional().meta({
  title: 'Value outside',
  description:
    'Stands for no data in a raster of integers that names no value for it. Left out: a mask says what lies outside, and every value stays one.',
});
