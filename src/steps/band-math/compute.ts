import { type BandDeclaration, type BlockFunction, type Reading, type StepJob, writePixels } from '../step-kit.ts';
import { parseExpression } from './expression.ts';

/** No result is NaN. */
export const nodata = NaN;
const pieceCount = 8_192;

/** Writes the result of an expression over physical values. A pixel has no data if a band has none there, or if the result is not finite. */
export async function computeExpression(
  job: Pick<StepJob<never>, 'scene' | 'raster' | 'outputPath' | 'workFolder' | 'share' | 'tile'>,
  {
    expression,
    constants = {},
    output,
    reading,
  }: {
    readonly expression: string;
    readonly constants?: Readonly<Record<string, number>>;
    readonly output: BandDeclaration;
    readonly reading: Reading;
  },
): Promise<void> {
  const parsed = parseExpression(expression, constants);
  // In pieces that stay in the processor's cache, and so small that the parts of the expression need no memory to speak of.
  const pieces: Float64Array[] = parsed.bands.map(() => new Float64Array(0));
  const compute: BlockFunction = (inputs, [out = pieces[0]!], { width, rows }) => {
    const count = width * rows;
    for (let from = 0; from < count; from += pieceCount) {
      const to = Math.min(count, from + pieceCount);
      inputs.forEach((values, k) => (pieces[k] = values.subarray(from, to)));
      parsed.evaluate(pieces, out.subarray(from, to), to - from);
      // Some functions hide a missing value: NaN ^ 0 is 1.
      for (const values of inputs) for (let i = from; i < to; i++) if (values[i] !== values[i]) out[i] = NaN;
    }
  };
  await writePixels(
    job,
    {
      bands: parsed.bands.map((name) => job.scene.findBand(name)),
      reading,
      output: { path: job.outputPath, bands: [output] },
      share: job.share,
    },
    () => compute,
  );
}
