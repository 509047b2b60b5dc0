import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { KitError } from '../contract/kit-error.ts';
import { classesOfLabels } from '../raster/class-table.ts';
import { modelFile, type Model } from '../raster/model/model-file.ts';
import { estimateCog } from './estimate.ts';
import { defineStep, z, type AnyStep } from './step.ts';
import { codeOf } from '../files/index.ts';

/** Options of `onnxModel`: the folder of the model, and the words of its form. */
export interface OnnxModelOptions {
  /** Folder with `model.onnx` and `model.json` (docs/inference.md), beside your `app.ts`: `new URL('./models/water/', import.meta.url)`. */
  readonly folder: URL;
  readonly id: string;
  /** Default: the model's. */
  readonly title?: string;
  readonly description: string;
  /** Default: the model's. */
  readonly version?: string;
}

/**
 * A step that runs a model of your own over a raster, tile by tile, in the app itself: the likeliest class of each pixel. The
 * bands are those that the model names. Needs `onnxruntime-node`. Throws where the folder holds no such model.
 */
export function onnxModel({ folder: given, id, description, ...words }: OnnxModelOptions): AnyStep {
  const folder = given.href.endsWith('/') ? given : new URL(`${given.href}/`);
  const model: Model = {
    ...modelFile.parse(JSON.parse(readFileSync(new URL('model.json', folder), 'utf8'))),
    id,
    onnxPath: fileURLToPath(new URL('model.onnx', folder)),
  };
  return defineStep({
    id,
    version: words.version ?? model.version,
    title: words.title ?? model.name,
    description,
    parameters: z.object({}),
    input: {
      description: `Bands on the same grid: ${model.bands.join(', ')}.`,
      sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
      synthetic: 'multispectral',
    },
    sameGrid: true,
    output: {
      fileName: `${id}.tif`,
      sourceType: 'UNKNOWN',
      bands: [{ description: 'class', dataType: 'Byte', nodata: 255 }],
      preview: {
        ramp: 'gray',
        classes: classesOfLabels(model.labels, model.colors),
      },
    },
    needs: () => ({ bands: model.bands }),
    estimate: (input) => estimateCog(input, { bytesPerPixel: 0.1, secondsPerMegapixel: 0.5 }),

    async run({ scene, raster, outputPath, workFolder, share }) {
      const bands = model.bands.map((name) => scene.findBand(name));
      const first = bands[0]!;
      for (const band of bands) raster.requireSameGrid(first, band);
      const { classify } = await import('../raster/model/classify.ts').catch((cause: unknown) => {
        if (codeOf(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause;
        throw new KitError(
          'not_installed',
          `${id} runs a model, and onnxruntime-node is not installed where the app runs: npm install onnxruntime-node`,
          { status: 500 },
        );
      });
      const classes = await classify({ model, bands, path: `${workFolder}/classes.tif`, context: share(0, 0.9) });
      raster.writeCog(
        classes,
        outputPath,
        { compression: 'DEFLATE', blockSize: 512, resampling: 'MODE' },
        share(0.9, 1),
      );
      classes.close();
    },
  });
}
