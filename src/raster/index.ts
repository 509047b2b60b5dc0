/** Exports for the server processes. Nothing here loads GDAL, which runs in child processes only. */
export type { ItemBand, ItemFacts, Reading, Scaling, ValueScale } from './band-reader.ts';
export { bandNames, bandOfFileName, sensorOfFileNames, type Sensor } from './band-names.ts';
export { classesOfLabels, legendName } from './class-table.ts';
export { boxOf, footprintOfBox, type Footprint } from './footprint.ts';
export { rasterExtensions } from './raster-files.ts';
export { vectorExtensions } from './vector-files.ts';
export type { PreviewJobInput } from './preview-job.ts';
export type { PreviewStyle } from './preview.ts';
export { rampNames } from './ramps.ts';
export { modelFile, type Model } from './model/model-file.ts';
export { gridDifference, matchBand, SceneError, type BandGrid, type NamedBand } from './match-band.ts';
export { syntheticBands, type SyntheticKind } from './synthetic-bands.ts';
export type { DescribedInput } from './describe-job.ts';
export type { UnpackInput, UnpackLimits } from './unpack.ts';

/** Job that draws the one raster that it is lent: `PreviewJobInput` to a PNG. */
export const previewJob = new URL('./preview-job.ts', import.meta.url);
/** Job that says what the rasters that it is lent hold: to `DescribedInput`. */
export const describeJob = new URL('./describe-job.ts', import.meta.url);
/** Job that unpacks the rasters of the archive that it is lent into its work folder: `UnpackInput` to their names, null where the file is no archive. */
export const unpackJob = new URL('./unpack-job.ts', import.meta.url);
