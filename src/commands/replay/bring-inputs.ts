import { createHash } from 'node:crypto';
import { constants, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { KitError, type WireProfile } from '../../contract/index.ts';
import type { Bundle, BundledInput } from '../../sandbox/bundles/bundle.ts';
import { bringFile, type BroughtItem } from '../bring-file.ts';
import type { OwnSandbox } from '../own-sandbox.ts';
import { digestFile } from '../digest-file.ts';
import { codeOf } from '../../files/index.ts';

/** The run cannot be played again: the message says why. */
export class UnplayableError extends KitError {
  constructor(message: string) {
    super('not_replayable', message);
  }
}

export interface BringOptions {
  /** Files that are not in the bundle. */
  readonly paths: readonly string[];
  /** For what is on its way. */
  readonly folder: string;
  /** Input folder of the app that is played with; null for another's app, because nobody knows its folder. */
  readonly inputDir: string | null;
  readonly sandbox: Pick<OwnSandbox, 'url' | 'apiKey' | 'adminKey'>;
  readonly profile: WireProfile;
  readonly signal: AbortSignal;
}

/** Items that replace the recorded items on the sandbox that is played on, by `collectionId/itemId`. */
export type BroughtItems = ReadonlyMap<string, BroughtItem>;

/** Puts what a run was given where it can be had again: into the catalog, or into the app's folder. Throws `UnplayableError`. */
export async function bringInputs({ inputs }: Pick<Bundle, 'inputs'>, options: BringOptions): Promise<BroughtItems> {
  const given = new Map<string, string>();
  for (const path of options.paths)
    given.set(
      await digestFile(path).catch((error: unknown) => {
        throw new UnplayableError(`--input ${path} cannot be read (${codeOf(error)})`);
      }),
      path,
    );
  const items = new Map<string, BroughtItem>();
  for (const [i, input] of inputs.entries()) {
    const path = join(options.folder, String(i));
    await mkdir(options.folder, { recursive: true });
    await write(input, path, given);
    const { from, fileName } = input;
    if (from.type === 'local') await placeLocal(path, from.path, options.inputDir);
    else {
      const { collectionId, itemId, sourceType, properties } = from;
      const item = await bringFile(
        options.sandbox,
        options.profile,
        { path, fileName, sourceType, properties },
        options.signal,
      ).catch((error: unknown) => {
        throw error instanceof KitError ? new UnplayableError(error.message) : error;
      });
      items.set(`${collectionId}/${itemId}`, item);
    }
  }
  return items;
}

async function write({ fileName, sha256, data }: BundledInput, path: string, given: ReadonlyMap<string, string>) {
  const own = given.get(sha256);
  if (own !== undefined) return copyFile(own, path, constants.COPYFILE_FICLONE);
  if (data === null)
    throw new UnplayableError(
      `its input ${fileName} is not in the bundle: give the file with SHA-256 ${sha256} by --input FILE`,
    );
  const bytes = Buffer.from(data, 'base64');
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw new UnplayableError(`its input ${fileName} in the bundle has not the bytes that its digest tells`);
  return writeFile(path, bytes);
}

async function placeLocal(path: string, name: string, inputDir: string | null): Promise<void> {
  if (inputDir === null)
    throw new UnplayableError(
      `its input ${name} is a file of the app's own folder: --start-request may say what another app is to run in its place`,
    );
  const place = resolve(inputDir, name);
  // A bundle is somebody's: it must not choose where this machine writes.
  if (!place.startsWith(inputDir + sep)) throw new UnplayableError(`its input ${name} is no path below a folder`);
  try {
    await mkdir(dirname(place), { recursive: true });
    await copyFile(path, place, constants.COPYFILE_FICLONE);
  } catch (error) {
    throw new UnplayableError(`its input ${name} cannot be put there (${codeOf(error)})`);
  }
}

/** The same value with the items that stand for the recorded ones. */
export function withItems(value: unknown, items: BroughtItems): unknown {
  if (Array.isArray(value)) return value.map((one) => withItems(one, items));
  if (value === null || typeof value !== 'object') return value;
  const { collectionId, itemId }: { collectionId?: unknown; itemId?: unknown } = value;
  const here =
    typeof collectionId === 'string' && typeof itemId === 'string' ? items.get(`${collectionId}/${itemId}`) : undefined;
  return {
    ...Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withItems(inner, items)])),
    ...here,
  };
}
