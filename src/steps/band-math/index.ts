import { defineStep, estimateCog, readingOf, readingParameters, realTypeOf, z } from '../step-kit.ts';
import { computeExpression, nodata } from './compute.ts';
import { ExpressionError, parseExpression } from './expression.ts';

const types = ['auto', 'Float32', 'Float64', 'Byte', 'UInt16', 'Int16', 'Int32'] as const;

/** Arithmetic over bands. */
export default defineStep({
  id: 'band-math',
  version: '2.2.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Band math',
  description:
    'Arithmetic over the bands of the input: + - * / ^, comparisons (< <= > >= == != && || !), parentheses, sqrt, abs, exp, log, log10, min, max, floor, mod, and where(condition, a, b).',
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
    type: z.enum(types).default('auto').meta({
      title: 'Type',
      description:
        'Type of the numbers that come out. auto is Float32, and Float64 if a band has 32-bit or 64-bit integers or Float64. Integers are rounded. Numbers beyond the type have no data. NaN marks them in real numbers, and a mask in integers.',
    }),
    ...readingParameters,
  }),
  input: { description: 'The bands that the expression names, on the same grid.', synthetic: 'multispectral' },
  sameGrid: true,
  isTiled: true,
  output: {
    fileName: 'band-math.tif',
    sourceType: 'UNKNOWN',
    bands: 'any',
    preview: { ramp: 'gray' },
  },
  needs: ({ expression }) => ({ expression: parseExpression(expression).bands }),
  estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.12 }),

  run(job) {
    const { expression, type } = job.parameters;
    const typesOfBands = () => parseExpression(expression).bands.map((name) => job.scene.findBand(name).band.dataType);
    const dataType = type === 'auto' ? realTypeOf(typesOfBands()) : type;
    return computeExpression(job, {
      expression,
      output: { description: 'result', dataType, ...(dataType.startsWith('Float') && { nodata }) },
      reading: readingOf(job.parameters),
    });
  },
});
