import { computeExpression, nodata } from '../band-math/compute.ts';
import { parseExpression } from '../band-math/expression.ts';
import { estimateCog } from '../estimate.ts';
import { readingOf, readingParameters } from '../reading.ts';
import { defineStep, z } from '../step.ts';
import { spectralIndexIds, spectralIndices } from './catalogue.ts';

/** A spectral index of the catalogue, by its name. */
export default defineStep({
  id: 'spectral-index',
  version: '2.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Spectral index',
  description: `A spectral index by its name: ${spectralIndexIds.map((id) => `${id} (${spectralIndices[id].name.toLowerCase()})`).join(', ')}.`,
  parameters: z.object({
    index: z.enum(spectralIndexIds).default('NDVI').meta({ title: 'Index', description: 'Which one.' }),
    factor: z.number().min(-1e6).max(1e6).optional().meta({
      title: 'Factor',
      description:
        'Converts stored numbers to reflectance, instead of the scale of the file or its item: 0.0000275 for Landsat Collection 2, 0.0001 for Sentinel-2.',
    }),
    offset: z.number().min(-1e6).max(1e6).optional().meta({
      title: 'Offset',
      description: 'The number to add then: -0.2 for Landsat Collection 2, -0.1 for Sentinel-2 since January 2022.',
    }),
    ...readingParameters,
  }),
  input: {
    description: 'A multispectral scene whose bands have common names (red, nir, swir16).',
    sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
    synthetic: 'multispectral',
  },
  sameGrid: true,
  output: {
    fileName: 'index.tif',
    sourceType: 'MULTISPECTRAL',
    bands: [{ description: 'index', dataType: 'Float32', nodata }],
    preview: { ramp: 'rdylgn', range: [-0.5, 0.9] },
  },
  needs: ({ index }) => ({ index: parseExpression(spectralIndices[index].formula).bands }),
  estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.12 }),

  run: (job) => {
    const { index, factor, offset } = job.parameters;
    const reading = readingOf(job.parameters);
    const isGiven = factor !== undefined || offset !== undefined;
    return computeExpression(job, {
      expression: spectralIndices[index].formula,
      output: { description: 'index', dataType: 'Float32', nodata },
      reading: isGiven ? { ...reading, scaling: { factor: factor ?? 1, offset: offset ?? 0 } } : reading,
    });
  },
});
