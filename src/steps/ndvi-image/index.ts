import { command, defineStep } from '../step-kit.ts';
import ndvi from '../ndvi/index.ts';

/** The kit's `ndvi` in Python, in a container image that you build of the `Dockerfile` beside it: the same pixels. */
export default defineStep({
  ...ndvi,
  id: 'ndvi-image',
  title: 'Normalized difference, in an image',
  run: command({ argv: ['python3', '/step/ndvi.py', '{job}'], image: 'marketplace-app-kit/ndvi:1.0.0' }),
});
