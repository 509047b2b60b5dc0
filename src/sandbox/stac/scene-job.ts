/** Runs in a child process: writes a synthetic scene. */
import type { Job } from '../../raster/child-protocol.ts';
import { ensureScene, type SyntheticScene } from '../../raster/synthetic-scene.ts';

const job: Job<{ path: string; scene: SyntheticScene }, null> = async ({ path, scene }) => {
  await ensureScene(path, scene);
  return null;
};
export default job;
