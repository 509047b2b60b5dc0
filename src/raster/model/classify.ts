/** Only for child processes: loads GDAL and onnxruntime. */
import gdal from 'gdal-async';
import { env, InferenceSession } from 'onnxruntime-node';
import { KitError } from '../../contract/kit-error.ts';
import type { JobContext } from '../../child/in-child.ts';
import { gridOf } from '../cog.ts';
import type { SceneBand } from '../scene.ts';
import { writeClassRaster } from './class-raster.ts';
import type { Model } from './model-file.ts';
import { tilesOf, TileReader } from './tiles.ts';
import { messageOf } from '../../files/index.ts';

/** Loads `model.onnx`. Throws `KitError` with code `bad_model`. The caller releases it. */
export async function loadModel({ onnxPath, id }: Model): Promise<InferenceSession> {
  // Its warnings go to a stream that nobody reads.
  env.logLevel = 'error';
  return InferenceSession.create(onnxPath).catch((cause: unknown) => {
    throw new KitError('bad_model', `model.onnx of ${id} does not load: ${messageOf(cause)}`);
  });
}

/** The likeliest class of each pixel, as a raster at `path`, for reading: on the grid of the bands, which is one. 255 where a band has no data. */
export async function classify({
  model,
  bands,
  path,
  context,
}: {
  readonly model: Model;
  readonly bands: readonly SceneBand[];
  readonly path: string;
  readonly context: JobContext;
}): Promise<gdal.Dataset> {
  const session = await loadModel(model);
  try {
    const grid = gridOf(bands[0]!.dataset);
    await writeClassRaster({
      ...{ path, model, grid, context, mask: null },
      reader: new TileReader(session, bands, model),
      tiles: tilesOf(grid, model),
      outputName: session.outputNames[0] ?? '',
    });
    return gdal.drivers.get('GTiff').open(path, 'r');
  } finally {
    await session.release();
  }
}
