import { readdir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import * as z from 'zod';
import { isPathSegment, KitError } from '../../contract/index.ts';
import { rasterExtensions, resolveFileInside, resolveInside } from '../../raster/index.ts';

/** Of one path segment: a dot or two would be another address. */
const identifier = z.string().min(1).max(512).refine(isPathSegment, 'must be an identifier');

/** An item of the platform's catalog. */
const itemReference = z.strictObject({ collectionId: identifier, itemId: identifier });
export type ItemReference = z.output<typeof itemReference>;

/**
 * What a run processes: items of the platform, their rasters together; a raster made by code; or one (a
 * file, or a folder of single-band files) under `INPUT_DIR`.
 */
export const runInput = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('platform'),
    items: z.array(itemReference).min(1, 'must name at least one item').max(200, 'must name at most 200 items'),
  }),
  z.strictObject({ type: z.literal('synthetic'), size: z.int().min(64).max(8192).default(1024) }),
  z.strictObject({ type: z.literal('local'), path: z.string().min(1).max(1024) }),
]);
export type RunInput = z.output<typeof runInput>;

export class InputError extends KitError {
  constructor(message: string) {
    super('invalid_input', message, { status: 400 });
  }
}

const maxFiles = 200;

/** The files of a local input, as absolute paths inside `inputDir`. Throws `UnsafePathError` or `InputError`. */
export async function findRasters(inputDir: string, path: string): Promise<string[]> {
  const real = await resolveInside(inputDir, path);
  if ((await stat(real)).isFile()) return [await resolveFileInside(inputDir, path)];
  const names = (await readdir(real)).filter((name) => rasterExtensions.has(extname(name).toLowerCase())).sort();
  if (names.length === 0)
    throw new InputError(`${JSON.stringify(path)} holds no raster; looked for ${[...rasterExtensions].join(' ')}`);
  if (names.length > maxFiles)
    throw new InputError(`${JSON.stringify(path)} holds ${names.length} rasters; the app reads at most ${maxFiles}`);
  return Promise.all(names.map((name) => resolveFileInside(inputDir, join(path, name))));
}

/** What can be given as a local input: the files and folders right under `inputDir`. */
export async function listInputs(inputDir: string): Promise<string[]> {
  const entries = await readdir(inputDir, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() || rasterExtensions.has(extname(entry.name).toLowerCase()))
    .map((entry) => entry.name)
    .sort();
}
