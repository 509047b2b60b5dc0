/** Runs in a child process: one model over one raster. */
import { join } from 'node:path';
import type { Geometry } from 'geojson';
import { KitError } from '../../contract/kit-error.ts';
import type { Job } from '../../child/in-child.ts';
import { gridOf } from '../../raster/cog.ts';
import { unwrap } from '../../raster/unwrap.ts';
import { openScene, requireSameGrid, SceneError, type Scene, type SceneBand } from '../../raster/scene.ts';
import { createAreaMask } from './area-mask.ts';
import { writeClassRaster } from '../../raster/model/class-raster.ts';
import { loadModel } from '../../raster/model/classify.ts';
import type { Model } from './models.ts';
import { tilesOf, TileReader } from '../../raster/model/tiles.ts';

export interface InferenceInput {
  readonly model: Model;
  /** Polygon or MultiPolygon in longitude and latitude; null for the whole raster. */
  readonly geometry: Geometry | null;
}

/** Job: the model over the one raster that it is lent. Writes `result` in the work folder. */
const job: Job<InferenceInput, null> = async (input, context) => {
  const { model } = input;
  const { files, workFolder } = context;
  const session = await loadModel(model);
  const [lent = ''] = files;
  const scene = openScene([(await unwrap(lent, workFolder))?.path ?? lent]);
  try {
    const bands = findBands(scene, model);
    const [first] = bands;
    if (!first) throw new KitError('bad_model', `model ${model.id} names no band`);
    bands.forEach((band) => requireSameGrid(first, band));
    const grid = gridOf(first.dataset);
    const mask = input.geometry ? createAreaMask(input.geometry, grid, workFolder) : null;
    const reader = new TileReader(session, bands, model);
    await writeClassRaster({
      path: join(workFolder, 'result'),
      model,
      grid,
      mask,
      reader,
      tiles: tilesOf(grid, model),
      context,
      outputName: session.outputNames[0] ?? '',
    });
    return null;
  } finally {
    scene.close();
    await session.release();
  }
};
export default job;

/** By their names; where the file names none, and has just as many as the model wants, in their order. */
function findBands(scene: Scene, model: Model): SceneBand[] {
  try {
    return model.bands.map((name) => scene.findBand(name));
  } catch (error) {
    const isNamed = scene.bands.some(({ names }) =>
      names.some((name) => model.bands.some((wanted) => wanted.toLowerCase() === name.toLowerCase())),
    );
    if (error instanceof SceneError && !isNamed && scene.bands.length === model.bands.length) return [...scene.bands];
    throw error;
  }
}
