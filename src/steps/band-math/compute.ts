import type { StepJob } from '../step.ts';
import { parseExpression } from './expression.ts';

export const nodata = -9999;
const pieceCount = 8_192;

/** Writes what an expression makes of `value * factor + offset` of its bands, as Float32. No data where a band has none, or no finite number comes out. */
export async function computeExpression(
  {
    scene,
    raster,
    outputPath,
    workFolder,
    share,
  }: Pick<StepJob<never>, 'scene' | 'raster' | 'outputPath' | 'workFolder' | 'share'>,
  {
    expression,
    description,
    factor,
    offset,
  }: { expression: string; description: string; factor: number; offset: number },
): Promise<void> {
  const parsed = parseExpression(expression);
  const bands = parsed.bands.map((name) => scene.findBand(name));
  const first = bands[0]!;
  for (const band of bands) raster.requireSameGrid(first, band);
  const missing = bands.map(({ band }) => band.noDataValue);
  // In pieces that stay in the processor's cache, and so small that the parts of the expression need no memory to speak of.
  const scaled = bands.map(() => new Float64Array(pieceCount));
  const piece = new Float64Array(pieceCount);
  const result = await raster.createRaster(
    {
      path: `${workFolder}/result.tif`,
      grid: raster.gridOf(first.dataset),
      dataType: 'Float32',
      bands: [{ description, nodata }],
    },
    (dataset) =>
      raster.walkStrips(
        bands.map(({ band }) => band),
        dataset.bands.get(1),
        (strips, out, count) => {
          for (let from = 0; from < count; from += pieceCount) {
            const length = Math.min(pieceCount, count - from);
            strips.forEach((values, k) => {
              for (let i = 0; i < length; i++) scaled[k]![i] = values[from + i]! * factor + offset;
            });
            parsed.evaluate(scaled, piece, length);
            for (let i = 0; i < length; i++)
              out[from + i] = Number.isFinite(Math.fround(piece[i]!)) ? piece[i]! : nodata;
            strips.forEach((values, k) => {
              const gone = missing[k];
              if (gone === null) return;
              for (let i = 0; i < length; i++) if (values[from + i] === gone) out[from + i] = nodata;
            });
          }
        },
        share(0, 0.6),
      ),
  );
  raster.writeCog(result, outputPath, { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' }, share(0.6, 1));
  result.close();
}
