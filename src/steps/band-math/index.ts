import { estimateCog } from '../estimate.ts';
import { defineStep, z } from '../step.ts';
import { computeExpression, nodata } from './compute.ts';
import { ExpressionError, parseExpression } from './expression.ts';

/** Any arithmetic over bands, as Float32. */
export default defineStep({
  id: 'band-math',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Band math',
  description:
    'Arithmetic over the bands of the input: + - * / ^, parentheses, and sqrt, abs, exp, log, log10, min, max, floor, mod.',
  parameters: z.object({
    expression: z
      .string()
      .min(1)
      .max(1_000)
      .default('(nir - red) / (nir + red)')
      .superRefine((text, context) => {
        try {
          parseExpression(text);
        } catch (error) {
          if (!(error instanceof ExpressionError)) throw error;
          context.addIssue({ code: 'custom', message: error.message });
        }
      })
      .meta({
        title: 'Expression',
        description:
          'Bands by common name (nir) or name (B5); in quotation marks where the name holds other signs, or is a number.',
      }),
  }),
  input: { description: 'The bands that the expression names, on the same grid.', synthetic: 'multispectral' },
  sameGrid: true,
  output: {
    fileName: 'band-math.tif',
    sourceType: 'MULTISPECTRAL',
    bands: [{ description: 'result', dataType: 'Float32', nodata }],
    preview: { ramp: 'gray' },
  },
  needs: ({ expression }) => ({ expression: parseExpression(expression).bands }),
  estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.12 }),

  run: (job) =>
    computeExpression(job, { expression: job.parameters.expression, description: 'result', factor: 1, offset: 0 }),
});
