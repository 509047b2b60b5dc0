import { basename, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import * as z from 'zod';
import type { CatalogItem } from '../../contract/index.ts';
import {
  describeJob,
  matchBand,
  removeFolder,
  runInChild,
  SceneError,
  syntheticBands,
  type ChildLimits,
  type Confinement,
  type NamedBand,
} from '../../raster/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import { InvalidParametersError, parameterSchema, type StepParameters } from './step-parameters.ts';

/** What is known of a run's input before anybody is asked to approve it; null where nobody says. */
export interface InputFacts {
  readonly bands: readonly NamedBand[] | null;
  /** Of the largest raster, in pixels. */
  readonly size: { readonly width: number; readonly height: number } | null;
}

/** By the catalog: bands only where every item says them. */
export function factsOfItems(items: readonly CatalogItem[]): InputFacts {
  const bands = items.every((item) => item.bands) ? items.flatMap((item) => bandsOf(item, items.length === 1)) : null;
  const shapes = items.flatMap(({ shape: [height, width] = [] }) => (height && width ? [{ width, height }] : []));
  const [largest = null] = shapes.toSorted((a, b) => b.width * b.height - a.width * a.height);
  return { bands, size: shapes.length === items.length ? largest : null };
}

/** Steps find a band of a single file by its number, too; whether it is a single file the item does not say. */
function bandsOf({ id, bands = [] }: CatalogItem, isOnly: boolean): NamedBand[] {
  return bands.map((band, i) => ({
    names: [
      ...new Set(
        [
          band.common_name ?? band['eo:common_name'],
          band.name,
          band.description,
          isOnly ? String(i + 1) : undefined,
        ].flatMap((name) => name || []),
      ),
    ],
    place: isOnly ? null : id,
  }));
}

/** Of the scene that code makes for a step. */
export function factsOfSynthetic(step: AnyStep, size: number): InputFacts {
  return {
    bands: syntheticBands[step.input.synthetic].map((name, i) => ({ names: [name, String(i + 1)], place: null })),
    size: { width: size, height: size },
  };
}

const described = z.object({
  bands: z.array(z.object({ names: z.array(z.string().max(500)).max(20), place: z.string().max(500) })).max(100_000),
  width: z.int().min(0),
  height: z.int().min(0),
});
const describeTimeoutMs = 60_000;

/** Of files of the app's own folder: a child opens them. Rejects with `ChildJobError` where they are no rasters. */
export async function factsOfFiles(
  paths: readonly string[],
  confinement: Confinement,
  limits: ChildLimits | undefined,
): Promise<InputFacts> {
  const workFolder = join(tmpdir(), `marketplace-app-kit-describe-${randomUUID()}`);
  try {
    const answer = await runInChild<unknown>({
      module: describeJob,
      input: null,
      files: paths.map((path) => ({ path, name: basename(path) })),
      workFolder,
      confinement,
      limits: { ...limits, timeoutMs: Math.min(limits?.timeoutMs ?? describeTimeoutMs, describeTimeoutMs) },
    });
    const { bands, width, height } = described.parse(answer);
    return { bands, size: { width, height } };
  } finally {
    await removeFolder(workFolder);
  }
}

/** Parameters that choose a band. */
export function bandParameters(step: AnyStep): string[] {
  return Object.entries(parameterSchema(step).properties).flatMap(([name, { kind }]) =>
    kind === 'band' ? [name] : [],
  );
}

/** Throws `InvalidParametersError` for each parameter that names a band which the input is known not to have, or to have twice. */
export function requireBands(step: AnyStep, parameters: StepParameters, { bands }: InputFacts): void {
  if (bands === null) return;
  const chosen = bandParameters(step).map((path) => [path, parameters[path]] as const);
  const needed = Object.entries(step.needs?.(parameters as never) ?? {}).flatMap(([path, names]) =>
    names.map((name) => [path, name] as const),
  );
  const details = [...chosen, ...needed].flatMap(([path, name]) => {
    if (typeof name !== 'string') return [];
    try {
      matchBand(bands, name);
      return [];
    } catch (error) {
      if (error instanceof SceneError) return [{ path, message: `does not fit: ${error.message}` }];
      throw error;
    }
  });
  if (details.length > 0) throw new InvalidParametersError(step.id, details);
}
