import { basename, join } from 'node:path';
import * as z from 'zod';
import type { CatalogBand, CatalogItem, ValidationDetail } from '../../contract/index.ts';
import type { runInChild, ChildLimits, Confinement } from '../../child/index.ts';
import { scratchFolder } from '../../files/index.ts';
import {
  describeJob,
  gridDifference,
  matchBand,
  SceneError,
  syntheticBands,
  type NamedBand,
  type SyntheticKind,
} from '../../raster/index.ts';
import { inputsOf, mainInput, type AnyStep } from '../../steps/step.ts';
import type { InputKind } from './run-input.ts';
import { InvalidParametersError, parameterSchema, type StepParameters } from './step-parameters.ts';

/** Facts about a run's input, known before anybody is asked to approve the run. Null if a fact is unknown. */
export interface InputFacts {
  readonly bands: readonly (NamedBand & { readonly isGridSure?: boolean })[] | null;
  /** True if a name that `bands` lacks is not in the input either. A catalog may leave out names that a file has. */
  readonly settles: (name: string) => boolean;
  /** Size of the largest raster, in pixels. */
  readonly size: { readonly width: number; readonly height: number } | null;
}

/** By the catalog: bands only where every item says them. */
export function factsOfItems(items: readonly CatalogItem[]): InputFacts {
  const bands = items.every((item) => item.bands) ? items.flatMap((item) => bandsOf(item, items.length === 1)) : null;
  const shapes = items.flatMap(({ shape: [height, width] = [] }) => (height && width ? [{ width, height }] : []));
  const [largest = null] = shapes.toSorted((a, b) => b.width * b.height - a.width * a.height);
  return { bands, settles: settledBy(items), size: shapes.length === items.length ? largest : null };
}

/** The names that an item gives a band, the common name first. */
export const namesOf = (band: CatalogBand): string[] =>
  [band.common_name ?? band['eo:common_name'], band.name, band.description].flatMap((name) => name || []);

/** Steps find a band of a single file by its number, too; whether it is a single file the item does not say. */
function bandsOf({ id, bands = [], shape: [height, width] = [] }: CatalogItem, isOnly: boolean) {
  const grid = height && width ? { width, height, geoTransform: null } : null;
  return bands.map((band, i) => ({
    names: [...new Set([...namesOf(band), isOnly ? String(i + 1) : ''].filter((name) => name !== ''))],
    place: isOnly ? null : id,
    grid,
    // Bands of one item may be files of several sizes.
    isGridSure: bands.length === 1,
  }));
}

/** Returns the facts about a scene that code makes for a step. */
export function factsOfSynthetic(kind: SyntheticKind, size: number): InputFacts {
  return {
    bands: syntheticBands[kind].map((name, i) => ({
      names: [name, String(i + 1)],
      place: null,
      grid: { width: size, height: size, geoTransform: null },
      isGridSure: true,
    })),
    settles: () => true,
    size: { width: size, height: size },
  };
}

const described = z.object({
  bands: z
    .array(
      z.object({
        names: z.array(z.string().max(500)).max(20),
        place: z.string().max(500),
        grid: z.object({
          width: z.int().min(0),
          height: z.int().min(0),
          geoTransform: z.array(z.number()).length(6).nullable(),
        }),
      }),
    )
    .max(100_000),
  width: z.int().min(0),
  height: z.int().min(0),
});
const describeTimeoutMs = 60_000;

/** Reads the facts about files in the app's own folder in a child. Rejects with `ChildJobError` if the files are not of that kind. */
export async function factsOfFiles(
  paths: readonly string[],
  kind: InputKind,
  confinement: Confinement,
  limits: ChildLimits | undefined,
  inChild: typeof runInChild,
): Promise<InputFacts> {
  const folder = scratchFolder('describe');
  try {
    const answer = await inChild<unknown>({
      module: describeJob,
      input: { kind },
      files: paths.map((path) => ({ path, name: basename(path) })),
      workFolder: join(folder.path, 'work'),
      confinement,
      limits: { ...limits, timeoutMs: Math.min(limits?.timeoutMs ?? describeTimeoutMs, describeTimeoutMs) },
    });
    const { bands, width, height } = described.parse(answer);
    return {
      bands: bands.map((band) => ({ ...band, isGridSure: true })),
      settles: () => true,
      size: { width, height },
    };
  } finally {
    await folder.remove();
  }
}

/** Parameters that choose a band, and of which input. */
export function bandParameters(step: AnyStep): { readonly name: string; readonly of: string | undefined }[] {
  const main = mainInput(step)?.[0];
  return Object.entries(parameterSchema(step).properties).flatMap(([name, { kind, of = main }]) =>
    kind === 'band' ? [{ name, of }] : [],
  );
}

/** Names that catalogs and files mean the same by: common names of the EO extension, polarizations, and heights. */
const vocabulary = new Set(
  'coastal blue green green05 yellow red rededge rededge071 rededge075 rededge078 nir nir08 nir09 cirrus swir16 swir22 pan lwir lwir11 lwir12 elevation vv vh hh hv'.split(
    ' ',
  ),
);
const speaks = (band: CatalogBand): boolean =>
  (band.common_name ?? band['eo:common_name']) !== undefined ||
  namesOf(band).some((name) => vocabulary.has(name.toLowerCase()));
/** Some name the one band so, some so. */
const alike: Readonly<Record<string, string>> = { nir: 'nir08', nir08: 'nir' };

/**
 * Looks for the bands that the parameters name. Throws `InvalidParametersError` for each that the input does not have, or has
 * twice, and where bands that must lie on the same pixels do not. Gives in words what only the file itself can tell, where a catalog leaves it open.
 */
export function requireBands(
  step: AnyStep,
  parameters: StepParameters,
  facts: ReadonlyMap<string, InputFacts>,
): string[] {
  const chosen = bandParameters(step).map(({ name, of }) => [name, parameters[name], of] as const);
  const rasters = inputsOf(step).flatMap(([name, { kind }]) => (kind === 'vector' ? [] : [name]));
  // Checked by the step's own schema, whose type `AnyStep` does not know.
  const needed = Object.entries(step.needs?.(parameters as never) ?? {}).flatMap(([path, names]) =>
    names.flatMap((name) => rasters.map((of) => [path, name, of] as const)),
  );
  const warnings: string[] = [];
  const matched: { path: string; name: string; band: NamedBand & { isGridSure?: boolean } }[] = [];
  const details: ValidationDetail[] = [...chosen, ...needed].flatMap(([path, name, of = '']) => {
    const { bands = null, settles = () => false } = facts.get(of) ?? {};
    if (typeof name !== 'string' || bands === null) return [];
    try {
      matched.push({ path, name: rasters.length > 1 ? `${name} of ${of}` : name, band: matchBand(bands, name) });
      return [];
    } catch (error) {
      if (!(error instanceof SceneError)) throw error;
      if (settles(name)) return [{ path, message: `does not fit: ${error.message}` }];
      warnings.push(`The catalog does not settle it: ${error.message}. The run fails if the data is so.`);
      return [];
    }
  });
  const [first, ...others] = step.sameGrid ? matched : [];
  for (const other of others) {
    const difference = first?.band.grid && other.band.grid ? gridDifference(first.band.grid, other.band.grid) : null;
    if (!first || difference === null) continue;
    const told = `${first.name} and ${other.name} do not lie on the same pixels (${difference})`;
    if (first.band.isGridSure && other.band.isGridSure)
      details.push({ path: other.path, message: `does not fit: ${told}; resample one of them first` });
    else warnings.push(`By the catalog, ${told}. The run fails if the data is so.`);
  }
  if (details.length > 0) throw new InvalidParametersError(step.id, details);
  return warnings;
}

/** A catalog is believed where it speaks of every band by a name that all mean the same by, and is asked for one of those; and as to numbers. */
function settledBy(items: readonly CatalogItem[]): InputFacts['settles'] {
  const bands = items.flatMap((item) => item.bands ?? []);
  const isSpoken = bands.every(speaks);
  return (name) => {
    if (/^\d+$/.test(name)) return Number(name) < 1 || Number(name) > bands.length;
    const wanted = name.toLowerCase();
    const isAlike = (word: string | undefined) => word?.toLowerCase() === alike[wanted];
    return (
      isSpoken && vocabulary.has(wanted) && !(wanted in alike && bands.some((band) => namesOf(band).some(isAlike)))
    );
  };
}
