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

export * from './step-kit.ts';
export { ExpressionError, parseExpression, type Expression } from './band-math/expression.ts';
export { onnxModel, type OnnxModelOptions } from './onnx-model.ts';
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
