import { withItemFacts, type CogOptions } from '../raster.ts';
import type { StepJob } from '../step-kit.ts';

export default async function work({
  parameters,
  scene,
  raster,
  outputPath,
  share,
}: StepJob<CogOptions>): Promise<void> {
  const source = scene.onlyRaster();
  const view = withItemFacts(source, scene.bands);
  raster.writeCog(view, outputPath, parameters, share(0, 1));
  if (view !== source) view.close();
}
