import { bandNames } from '../../raster/band-names.ts';
import type { RasterFacts } from '../inspect/facts.ts';
import type { SceneMetadata } from './import/scene-metadata.ts';
import type { SceneFile } from './items.ts';

export interface ItemBand {
  readonly name: string;
  /** Common name of the EO extension, `red`; null if the band has none. */
  readonly commonName: string | null;
  /** The value is `stored * scale + offset`. Default: the stored number. */
  readonly scale?: { readonly scale: number; readonly offset: number } | undefined;
  /** The stored number that marks no data. Default: none. */
  readonly nodata?: number | null;
}

const maxBands = 1_000;

/**
 * Properties that describe an item's data before it is fetched: `eo:bands`, `raster:bands` (scale, offset and nodata) and `proj:shape` (rows,
 * columns), by the EO, raster and projection extensions. @assumed item-bands: the spec names no bands
 */
export function bandProperties(
  bands: readonly ItemBand[],
  shape: readonly [number, number] | undefined,
): Record<string, unknown> {
  if (bands.length === 0 || bands.length > maxBands) return {};
  return {
    'eo:bands': bands.map(({ name, commonName }) => ({
      name,
      ...(commonName === null ? {} : { common_name: commonName }),
    })),
    ...(bands.some(({ scale }) => scale !== undefined)
      ? {
          'raster:bands': bands.map(({ scale, nodata = null }) => ({
            ...scale,
            ...(nodata === null ? {} : { nodata }),
          })),
        }
      : {}),
    ...(shape ? { 'proj:shape': [...shape] } : {}),
  };
}

/** Bands that are called by their common names alone. */
export const namedBands = (names: readonly string[]): ItemBand[] => names.map((name) => ({ name, commonName: null }));

/** Returns the bands of one file. Their names come from the band's description, the file's name, the colour or the number. */
export function bandsOfFile(fileName: string, { bands }: Pick<RasterFacts, 'bands'>): ItemBand[] {
  const [counted = []] = bands.length === 1 ? bandNames([fileName]) : [];
  return bands.map(({ description = '', color = '' }, i) => {
    const common = counted[1] ?? color;
    const name = description || counted[0] || color || String(i + 1);
    return { name, commonName: common === '' || common === name ? null : common };
  });
}

export const bandsOfScene = (
  files: readonly SceneFile[],
  { scales, nodata }: Pick<SceneMetadata, 'scales' | 'nodata'>,
): ItemBand[] =>
  files.map(({ band, name }) => ({
    name: band,
    commonName: name === band ? null : name,
    scale: scales[band],
    nodata: scales[band] ? nodata : null,
  }));
