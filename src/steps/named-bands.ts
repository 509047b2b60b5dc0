/** Bands that a parameter lists by their names. */
import { alphaOf } from '../raster/band-reader.ts';
import type { SceneBand } from '../raster/scene.ts';

/** The names in a text, which commas separate. */
export const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

export const isNotAlpha = ({ band, dataset }: SceneBand): boolean => alphaOf(dataset)?.id !== band.id;
