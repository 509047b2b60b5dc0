import type { StepParameters } from '../../src/app/processing/step-parameters.ts';

export interface Example {
  /** Files of the repository, or `ID.EXT`, what the example of another step has made, by the names of the step's inputs. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly parameters?: StepParameters;
  /** Commands to run first; those that make the inputs `ID.EXT` are added. Default: none. */
  readonly first?: readonly string[];
  /** A sentence below the command. */
  readonly about: string;
}

const olinda = 'src/sandbox/scenes/olinda-landsat7.tif';
const jacksboro = 'src/sandbox/scenes/jacksboro-dem.tif';
const ofOlinda = 'Landsat 7 over Olinda, Brazil.';
const ofJacksboro = 'Heights of the Jacksboro fault, Tennessee.';

/** A folder that is made of the scene of Olinda: its colours in pixels of four times the size, and their mean as it was. */
export const reducedScene = 'olinda-reduced';

const makesReducedScene = [
  `mkdir -p data/demo/${reducedScene}`,
  `gdal_translate -q -b 1 -b 2 -b 3 -outsize 25% 25% -r average ${olinda} data/demo/${reducedScene}/colours.tif`,
  `npm run demo -- --step band-math --param 'expression=(red+green+blue)/3' --input ${olinda}`,
  `mv data/demo/band-math.tif data/demo/${reducedScene}/pan.tif`,
];

/** Example of each step, in an order in which each step finds its inputs. */
export const examples: Readonly<Record<string, Example>> = {
  ndvi: { inputs: { input: olinda }, about: ofOlinda },
  'ndvi-python': { inputs: { input: olinda }, about: `${ofOlinda} The pixels are those of \`ndvi\`.` },
  'spectral-index': { inputs: { input: olinda }, parameters: { index: 'NDWI' }, about: ofOlinda },
  'band-math': {
    inputs: { input: olinda },
    parameters: { expression: 'floor(min(nir, 149) / 50)' },
    about: `${ofOlinda} Three classes of near infrared.`,
  },
  clip: {
    inputs: { input: olinda },
    parameters: { area: { type: 'Polygon', coordinates: [[[-34.93, -7.96], [-34.84, -7.96], [-34.82, -8.03], [-34.9, -8.05], [-34.93, -7.96]]] } }, // oxfmt-ignore
    about: ofOlinda,
  },
  'clip-to-features': {
    inputs: { raster: olinda, features: 'areas.gpkg' },
    parameters: { field: 'value', value: '1' },
    about: `${ofOlinda} One class of the areas that the example of \`polygonize\` makes.`,
  },
  'pan-sharpen': {
    inputs: { input: reducedScene },
    first: makesReducedScene,
    about: `${ofOlinda} The folder holds two files made of it: its colours, four times as coarse, and their mean in full detail.`,
  },
  harmonize: {
    inputs: { input: reducedScene },
    first: makesReducedScene,
    parameters: { bands: 'pan, red, green, blue', resampling: 'bilinear' },
    about: `${ofOlinda} The folder holds two files made of it: its colours, four times as coarse, and their mean in full detail. The colours get the fine pixels.`,
  },
  cog: { inputs: { input: olinda }, about: ofOlinda },
  reproject: { inputs: { input: olinda }, parameters: { crs: 'EPSG:4326', resampling: 'bilinear' }, about: ofOlinda },
  hillshade: { inputs: { input: jacksboro }, about: ofJacksboro },
  aspect: { inputs: { input: jacksboro }, about: ofJacksboro },
  slope: { inputs: { input: jacksboro }, about: ofJacksboro },
  'terrain-index': { inputs: { input: jacksboro }, parameters: { index: 'ruggedness' }, about: ofJacksboro },
  'color-relief': {
    inputs: { input: jacksboro },
    parameters: { colors: '250 #1a9641, 400 #ffffbf, 700 #8c6d5a, 1050 #ffffff' },
    about: ofJacksboro,
  },
  contours: { inputs: { input: jacksboro }, parameters: { interval: 50 }, about: ofJacksboro },
  polygonize: {
    inputs: { input: 'band-math.tif' },
    parameters: { smallest: 20_000, tolerance: 30 },
    about: 'The classes that the example of `band-math` makes.',
  },
  'zonal-statistics': {
    inputs: { values: olinda, zones: 'areas.gpkg' },
    parameters: { band: 'nir' },
    about: `${ofOlinda} Mean near infrared in the areas that the example of \`polygonize\` makes, from dark to light.`,
  },
};
