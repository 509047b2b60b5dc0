import { keepUnits, needsPlainCopy, plainCopy, withItemFacts, type CogOptions } from '../raster.ts';
import type { StepJob } from '../step-kit.ts';

export default async function work({
  parameters,
  scene,
  raster,
  outputPath,
  workFolder,
  share,
}: StepJob<CogOptions>): Promise<void> {
  const source = scene.onlyRaster();
  const isCopied = needsPlainCopy(scene.bands);
  const view = isCopied ? await plainCopy(workFolder, scene, share(0, 0.5)) : withItemFacts(source, scene.bands);
  if (isCopied) keepUnits(view, [scene]);
  const writing = isCopied ? share(0.5, 1) : share(0, 1);
  raster.writeCog(view, outputPath, parameters, writing);
  if (view !== source) view.close();
}
