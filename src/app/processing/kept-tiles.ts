import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { FileDigests } from '../../child/index.ts';
import { codeOf, removeFolder } from '../../files/index.ts';
import { requireDigest } from './take-outputs.ts';
import type { Tile } from './plan-tiles.ts';
import type { StepUsage } from './step-executor.ts';

const recordName = 'tile.json';
/** Folder of an attempt's tiles, below the attempt's own. */
export const tilesFolder = 'tiles';
/** Folder of a tile's files, below the tile's own. */
export const partFolder = 'part';

const tileRecord = z.strictObject({
  /** Hash of everything that the pixels depend on. */
  job: z.hash('sha256'),
  files: z.record(z.string(), z.strictObject({ sizeBytes: z.int(), sha256: z.hash('sha256') })),
  usage: z.strictObject({ cpuSeconds: z.number(), peakMemoryBytes: z.number(), place: z.string() }),
});
type TileRecord = z.output<typeof tileRecord>;

/** A tile that was computed, and what that took. */
export interface FinishedTile {
  /** Its files, by their names. */
  readonly paths: ReadonlyMap<string, string>;
  readonly usage: StepUsage;
}

export interface KeptTilesOptions {
  /** Folder of this attempt. */
  readonly workFolder: string;
  /** Everything that the pixels of all tiles depend on: code, parameters, inputs with their digests. */
  readonly dependsOn: () => Promise<unknown>;
  readonly digests: FileDigests;
}

/**
 * Moves the finished tiles of earlier attempts at a run into the folder of this attempt. Call it first in an attempt, because tidying
 * removes the other folders at any time. It reads no tile. `workFolder`: named after the claim, as `WorkFolders` names it.
 */
export async function bringEarlierTiles(workFolder: string): Promise<void> {
  const own = Number(basename(workFolder));
  const attempts = (await namesIn(dirname(workFolder))).filter((name) => Number(name) < own);
  for (const attempt of attempts.toSorted((a, b) => Number(b) - Number(a))) {
    const from = join(dirname(workFolder), attempt, tilesFolder);
    for (const tile of await namesIn(from)) {
      if (!(await namesIn(join(from, tile))).includes(recordName)) continue;
      await mkdir(join(workFolder, tilesFolder), { recursive: true });
      // Tidying may remove it at this moment, and a later attempt may have finished the same tile.
      await rename(join(from, tile), join(workFolder, tilesFolder, tile)).catch(() => {});
    }
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/**
 * Finished tiles of a run on this machine. An attempt uses those of earlier attempts, if they were computed by the same code from
 * the same inputs and their files are as they were left. So a restart computes only the tiles that were not finished.
 */
export class KeptTiles {
  readonly #options: KeptTilesOptions;
  #job: Promise<string> | undefined;

  constructor(options: KeptTilesOptions) {
    this.#options = options;
  }

  folderOf({ number }: Tile): string {
    return join(this.#options.workFolder, tilesFolder, String(number));
  }

  /** Returns the tiles that earlier attempts have finished, and removes those that are not the same. Rejects with the signal's reason. */
  async take(tiles: readonly Tile[], signal: AbortSignal): Promise<Map<Tile, FinishedTile>> {
    const taken = new Map<Tile, FinishedTile>();
    for (const tile of tiles) {
      signal.throwIfAborted();
      const finished = await this.#verified(tile);
      if (finished) taken.set(tile, finished);
      else await removeFolder(this.folderOf(tile));
    }
    return taken;
  }

  async #verified(tile: Tile): Promise<FinishedTile | null> {
    const folder = this.folderOf(tile);
    const record = await readRecord(folder);
    if (!record || record.job !== (await this.#hashOf(tile))) return null;
    const paths = new Map(Object.keys(record.files).map((name) => [name, join(folder, partFolder, name)]));
    const measured = await this.#measure(paths).catch(() => null);
    return isDeepStrictEqual(measured, record.files) ? { paths, usage: record.usage } : null;
  }

  /**
   * Keeps a tile for later attempts. Its files are in its folder. `sent`: digests that its executor has sent, by file name. Throws
   * `ChildJobError` if a file differs from them.
   */
  async keep(tile: Tile, { paths, usage }: FinishedTile, sent: ReadonlyMap<string, string>): Promise<void> {
    const files = await this.#measure(paths);
    for (const [name, { sha256 }] of Object.entries(files)) requireDigest(name, sha256, sent);
    const record: TileRecord = { job: await this.#hashOf(tile), files, usage };
    const path = join(this.folderOf(tile), recordName);
    await writeFile(`${path}.new`, JSON.stringify(record));
    await rename(`${path}.new`, path);
  }

  async #measure(paths: ReadonlyMap<string, string>): Promise<TileRecord['files']> {
    const digests = await this.#options.digests.of([...paths.values()]);
    return Object.fromEntries([...paths.keys()].flatMap((name, i) => (digests[i] ? [[name, digests[i]]] : [])));
  }

  async #hashOf({ from, to }: Tile): Promise<string> {
    const job = await (this.#job ??= this.#options.dependsOn().then((all) => JSON.stringify(all)));
    return createHash('sha256')
      .update(JSON.stringify([from, to]))
      .update(job)
      .digest('hex');
  }
}

/** Null if the tile was not finished, or if the record is from another release. */
async function readRecord(folder: string): Promise<TileRecord | null> {
  try {
    return tileRecord.safeParse(JSON.parse(await readFile(join(folder, recordName), 'utf8'))).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError || ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return null;
    throw error;
  }
}
