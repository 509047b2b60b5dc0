import { command, defineStep } from '../step-kit.ts';
import ndvi from '../ndvi/index.ts';

/** The kit's `ndvi` in Python, with Debian's GDAL and numpy (`python3-gdal`): the same pixels. */
export default defineStep({
  ...ndvi,
  id: 'ndvi-python',
  title: 'Normalized difference, in Python',
  // A program computes all rows.
  isTiled: false,
  run: command({ argv: ['python3', '{code}/ndvi.py', '{job}'], code: import.meta.url }),
});
