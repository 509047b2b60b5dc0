import { KitError } from '../../contract/kit-error.ts';
import { classColors } from '../../raster/class-table.ts';
import { maskOf } from '../../raster/band-reader.ts';
import { gridDifference } from '../../raster/match-band.ts';
import type { SceneBand } from '../../raster/scene.ts';
import { area } from '../parameters.ts';
import { defineStep, z, type AnyStep } from '../step.ts';

/** Options of `platformModel`: the model of the platform, and the words of its form. */
export interface PlatformModelOptions {
  /** The model's, as the platform lists it (spec 4.7). */
  readonly modelId: string;
  readonly id: string;
  readonly version: string;
  readonly title: string;
  readonly description: string;
  /** Bands that the model takes, by name, in its order. */
  readonly bands: readonly [string, ...string[]];
  /** Names of its classes, from 0; at most 255. */
  readonly labels: readonly [string, ...string[]];
}

const nodata = 255;
/** One of the parts of the bar: the app sends bands of the input, then waits for the platform. */
const parts = { input: 0.2, model: 0.7, classes: 0.85 };

/**
 * A step that lets the platform run one of its models (spec 4.7): the app uploads the bands that the model takes, runs it, waits, and fetches the
 * class of each pixel. Throws where it has too many labels.
 */
export function platformModel({
  modelId,
  id,
  version,
  title,
  description,
  bands,
  labels,
}: PlatformModelOptions): AnyStep {
  if (labels.length > nodata) throw new Error(`${id} has ${labels.length} labels; a raster of bytes holds ${nodata}`);
  return defineStep({
    id,
    version,
    title,
    description,
    platformModels: [modelId],
    parameters: z.object({
      area: area({ title: 'Area', description: 'Where the model is to look. Left out: everywhere.' }).optional(),
    }),
    input: {
      description: `Bands on the same grid: ${bands.join(', ')}. The app sends them to the platform's model ${modelId}.`,
      sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
      synthetic: 'multispectral',
    },
    sameGrid: true,
    output: {
      fileName: `${id}.tif`,
      sourceType: 'UNKNOWN',
      bands: [{ description: 'class', dataType: 'Byte', nodata }],
      preview: {
        ramp: 'gray',
        classes: labels.map((name, value) => ({ value, name, color: classColors[value % classColors.length]! })),
      },
    },
    needs: () => ({ bands }),

    async run({ parameters, scene, raster, platform, outputPath, workFolder, share }) {
      const found = bands.map((name) => scene.findBand(name));
      const first = found[0]!;
      for (const band of found) raster.requireSameGrid(first, band);
      const grid = raster.gridOf(first.dataset);
      const { dataType, missing } = storageOf(found);

      const sent = await raster.createRaster(
        {
          path: `${workFolder}/bands.tif`,
          grid,
          dataType,
          bands: bands.map((name) => ({ description: name, ...(missing !== undefined && { nodata: missing }) })),
        },
        async (target) => {
          for (const [i, one] of found.entries()) {
            const ofBand = share((parts.input * i) / found.length / 2, (parts.input * (i + 1)) / found.length / 2);
            await raster.walkBands(
              // Models are trained on stored numbers.
              { inputs: [raster.reader(one, { scaling: 'stored' })], outputs: [target.bands.get(i + 1)] },
              ([values], [out], { width, rows }) => {
                for (let at = 0; at < width * rows; at++) {
                  const value = values![at]!;
                  out![at] = Number.isNaN(value) ? (missing ?? NaN) : value;
                }
              },
              ofBand,
            );
          }
        },
      );
      const path = `${workFolder}/${id}-input.tif`;
      raster.writeCog(
        sent,
        path,
        { compression: 'DEFLATE', blockSize: 512, resampling: 'NEAREST' },
        share(parts.input / 2, parts.input),
      );
      sent.close();

      const answered = await platform.runModel({ modelId, path, ...(parameters.area && { area: parameters.area }) });
      let result: ReturnType<typeof raster.openRaster>;
      try {
        result = raster.openRaster(answered);
      } catch {
        throw new KitError(
          'unexpected_result',
          `the platform's model ${modelId} answered with no raster of classes, as a DETECTION model does; the app's step must name another`,
          { status: 422 },
        );
      }
      share(parts.model, 1).progress(0, 'reading what the model found');
      const differs = gridDifference({ ...grid, geoTransform: grid.geoTransform }, { ...raster.gridOf(result) });
      if (differs !== null || result.bands.count() !== 1)
        throw new KitError(
          'unexpected_result',
          `the platform's model ${modelId} answered with another raster than one of classes on the pixels of its input${differs === null ? '' : `: ${differs}`}`,
          { status: 422 },
        );
      const source = result.bands.get(1);
      const gone = source.noDataValue;
      const classes = await raster.createRaster(
        { path: `${workFolder}/classes.tif`, grid, dataType: 'Byte', bands: [{ description: 'class', nodata }] },
        (target) =>
          raster.walkStrips(
            [source],
            target.bands.get(1),
            ([values = []], out, count) => {
              for (let i = 0; i < count; i++) {
                const value = values[i]!;
                out[i] = value !== gone && value >= 0 && value < labels.length ? value : nodata;
              }
            },
            share(parts.model, parts.classes),
          ),
      );
      result.close();
      raster.writeCog(
        classes,
        outputPath,
        { compression: 'DEFLATE', blockSize: 512, resampling: 'MODE' },
        share(parts.classes, 1),
      );
      classes.close();
    },
  });
}

/** Data type that holds the values of all bands, and one value for pixels that are missing in any. */
function storageOf(bands: readonly SceneBand[]): { dataType: string; missing: number | undefined } {
  const types = new Set(bands.map(({ band }) => band.dataType ?? 'Float64'));
  const gaps = new Set(bands.map(({ band }) => band.noDataValue));
  const isMasked = bands.some(({ band }) => maskOf(band) !== null);
  const [type = 'Float64'] = types;
  const [gap = null] = gaps;
  if (types.size === 1 && gaps.size === 1 && !isMasked) return { dataType: type, missing: gap ?? undefined };
  // A value that is missing in one band may be one in another: not a number is none in all.
  return { dataType: 'Float64', missing: gaps.size === 1 && gap === null && !isMasked ? undefined : NaN };
}
