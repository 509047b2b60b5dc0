import { band, definePixelStep } from '../step-kit.ts';

/** (A - B) / (A + B), as Float32. No data where the sum is 0 or either band has none. */
export default definePixelStep({
  id: 'ndvi',
  version: '2.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Normalized difference (NDVI)',
  description:
    'The normalized difference (A - B) / (A + B) of two bands: NDVI with near infrared and red, NDWI with green and near infrared.',
  bands: {
    bandA: band({
      default: 'nir',
      title: 'Band A',
      description: 'Band A (added): common name (nir, red, green, swir16), name (B5) or number.',
    }),
    bandB: band({
      default: 'red',
      title: 'Band B',
      description: 'Band B (subtracted), named in the same way.',
    }),
  },
  input: {
    description: 'Two bands on the same grid, in one file or in one file each.',
    sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
    synthetic: 'multispectral',
  },
  output: {
    fileName: 'ndvi.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'normalized difference', dataType: 'Float32' }],
    preview: { ramp: 'rdylgn', range: [-0.2, 0.9] },
  },
  pixel: () => (a, b) => (a - b) / (a + b),
});
