/**
 * The parts of a step: `marketplace-app-kit/steps` without the kit's own steps. Those import this module and, for their work, `raster.ts`. Nothing
 * here loads GDAL.
 */
export { KitError } from '../contract/kit-error.ts';
export {
  defineStep,
  inputsOf,
  mainInput,
  outputsOf,
  z,
  type AnyStep,
  type BandDeclaration,
  type EstimateInput,
  type FileOutput,
  type InputDeclaration,
  type InputOf,
  type OutputDeclaration,
  type RasterInput,
  type RasterOutput,
  type Step,
  type StepDeclaration,
  type StepEstimate,
  type StepJob,
  type VectorInput,
  type VectorOutput,
} from './step.ts';
export {
  definePixelStep,
  writePixels,
  type BlockFunction,
  type PixelGrid,
  type PixelOutput,
  type PixelStep,
} from './pixel-step.ts';
export { readingOf, readingParameters, type ReadingParameters } from './reading.ts';
export { estimateCog } from './estimate.ts';
export { area, band, crs, date, ownFile, resampling, resamplings, type ParameterWords } from './parameters.ts';
export { polygonsOf, type Area, type AreaLimits } from './area.ts';
export type { PreviewStyle } from '../raster/preview.ts';
export { command, type Command, type CommandJob } from './command.ts';
export { isNotAlpha, namesIn } from './named-bands.ts';
export { byGradient, byNeighbours, type OfGradient, type TerrainOptions } from './terrain.ts';
export { realTypeOf } from '../raster/integer-types.ts';
export { SceneError } from '../raster/match-band.ts';
/** Types of a step's inputs, outputs and job. */
export type { CommandFile, CommandRun, PixelProgram } from './command.ts';
export type { PixelFunctions, PixelStepOutput } from './pixel-step.ts';
export type { JobContext } from '../child/protocol.ts';
export type {
  BandReader,
  ItemBand,
  ItemFacts,
  ReadableBand,
  Reading,
  Scaling,
  ValueScale,
} from '../raster/band-reader.ts';
export type { OutputValues, Readable, Strip } from '../raster/block-walk.ts';
export type { RasterClass } from '../raster/class-table.ts';
export type { CogOptions, Grid, NewRaster } from '../raster/cog.ts';
export type { Features } from '../raster/features.ts';
export type { BandGrid, NamedBand } from '../raster/match-band.ts';
export type { Scene, SceneBand } from '../raster/scene.ts';
export type { SyntheticKind } from '../raster/synthetic-bands.ts';
