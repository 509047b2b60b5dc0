/** Runs in a child process: makes a synthetic scene. */
import { join } from 'node:path';
import type { Job } from '../../child/in-child.ts';
import { writeSyntheticScene, type SyntheticScene } from '../../raster/synthetic-scene.ts';

/** Job: writes `scene.tif` in the work folder. */
const job: Job<SyntheticScene, null> = async (scene, { workFolder }) => {
  await writeSyntheticScene(join(workFolder, 'scene.tif'), scene);
  return null;
};
export default job;
