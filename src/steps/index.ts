/** What a step is made with, and the steps that the kit brings. */
import cog from './cog/index.ts';
import hillshade from './hillshade/index.ts';
import ndvi from './ndvi/index.ts';
import ndviPython from './ndvi-python/index.ts';
import slope from './slope/index.ts';

export {
  defineStep,
  z,
  type AnyStep,
  type BandDeclaration,
  type EstimateInput,
  type Step,
  type StepDeclaration,
  type StepEstimate,
  type StepJob,
} from './step.ts';
export { estimateCog } from './estimate.ts';
export { band, crs, date, resampling, resamplings, type ParameterWords } from './parameters.ts';
export type { PreviewStyle } from '../raster/preview.ts';
export { command, type Command, type CommandJob } from './command.ts';
export { cog, hillshade, ndvi, ndviPython, slope };
