/** Functions to make a step, and the steps that the kit brings. */
import aspect from './aspect/index.ts';
import change from './change/index.ts';
import clip from './clip/index.ts';
import clipToFeatures from './clip-to-features/index.ts';
import cloudMask from './cloud-mask/index.ts';
import contours from './contours/index.ts';
import mosaic from './mosaic/index.ts';
import panSharpen from './pan-sharpen/index.ts';
import polygonize from './polygonize/index.ts';
import reproject from './reproject/index.ts';
import zonalStatistics from './zonal-statistics/index.ts';
import bandMath from './band-math/index.ts';
import cog from './cog/index.ts';
import colorRelief from './color-relief/index.ts';
import harmonize from './harmonize/index.ts';
import hillshade from './hillshade/index.ts';
import ndvi from './ndvi/index.ts';
import ndviImage from './ndvi-image/index.ts';
import ndviPython from './ndvi-python/index.ts';
import slope from './slope/index.ts';
import spectralIndex from './spectral-index/index.ts';
import terrainIndex from './terrain-index/index.ts';

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
export type { Area, AreaLimits } from './area.ts';
export type { PreviewStyle } from '../raster/preview.ts';
export { command, type Command, type CommandJob } from './command.ts';
export { ExpressionError, parseExpression, type Expression } from './band-math/expression.ts';
export { onnxModel, type OnnxModelOptions } from './onnx-model/index.ts';
export { spectralIndices, type SpectralIndex } from './spectral-index/catalogue.ts';
export { spectralIndexFrom } from './spectral-index/index.ts';
export {
  aspect,
  bandMath,
  change,
  clip,
  clipToFeatures,
  cloudMask,
  cog,
  colorRelief,
  contours,
  harmonize,
  hillshade,
  mosaic,
  ndvi,
  ndviImage,
  ndviPython,
  panSharpen,
  polygonize,
  reproject,
  slope,
  spectralIndex,
  terrainIndex,
  zonalStatistics,
};
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
