import { mkdir, rename, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import * as z from 'zod';
import { isPathSegment, sourceTypes, type CatalogBand, type CatalogItem } from '../../contract/index.ts';
import { PlatformError, requireAllowed, type PlatformClient } from '../../platform-client/index.ts';
import { runInChild, type ChildLimits, type Confinement } from '../../child/index.ts';
import { removeFolder, requirePlainFile } from '../../files/index.ts';
import { unpackJob, type ItemBand, type ItemFacts, type UnpackInput } from '../../raster/index.ts';
import { namesOf } from './input-facts.ts';
import { extensionsOf, InputError, type InputKind, type ItemReference } from './run-input.ts';

export interface FetchOptions {
  /** Bytes that the run's other inputs already use of its limit. */
  readonly bytesTaken: number;
  readonly kind: InputKind;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number) => void;
  /** Repeats a call while the platform is away. */
  readonly repeat: <T>(call: () => Promise<T>) => Promise<T>;
}

/** A file of an item, with its metadata from the catalog. */
interface FetchedFile {
  readonly path: string;
  readonly ofItem: ItemFacts;
}

/** Rasters of the platform's items as a run's input. */
export interface PlatformInput {
  /** The items as the catalog has them. Throws `InputError` for one that is not there or has no data, `DownloadError` for one whose data may not be fetched. */
  check(items: readonly ItemReference[], signal?: AbortSignal): Promise<CatalogItem[]>;
  /** Fetches the items' data into `folder`, which is emptied first. Returns the files of that kind, with absolute paths. Throws `InputError`, `DownloadError`, `ChildJobError` or `PlatformError`. */
  fetch(items: readonly ItemReference[], folder: string, options: FetchOptions): Promise<FetchedFile[]>;
}

export interface PlatformInputOptions {
  readonly client: Pick<PlatformClient, 'getItem' | 'download'>;
  readonly allowedOrigins: readonly string[];
  /** The address by which this process reaches a link of the platform. Default: the link itself. */
  readonly reachable?: (href: string) => string;
  /** Limits all items of a run together, packed and unpacked. */
  readonly maxBytes: number;
  readonly confinement: Confinement;
  /** Limits the process that unpacks an item's archive; its disk limit is what is left of `maxBytes`. */
  readonly limits?: ChildLimits;
}

const fileNames = z.array(z.string().refine((name) => isPathSegment(name) && !/[/\\\0]/.test(name))).max(10_000);
const maxEntries = 10_000;
const maxFiles = 200;
const unpackedSlackBytes = 1024 * 1024;

export function createPlatformInput({
  client,
  allowedOrigins,
  reachable = (href) => href,
  maxBytes,
  confinement,
  limits,
}: PlatformInputOptions): PlatformInput {
  /** The item with a fresh link: those that a search gave may have ended since. */
  async function find(
    { collectionId, itemId }: ItemReference,
    signal?: AbortSignal,
  ): Promise<CatalogItem & { dataHref: string }> {
    const item = await client.getItem(collectionId, itemId, { signal }).catch((error: unknown) => {
      if (error instanceof PlatformError && error.platformStatus === 404)
        throw new InputError(
          `the platform has no item ${JSON.stringify(itemId)} in collection ${JSON.stringify(collectionId)}`,
        );
      throw error;
    });
    if (item.dataHref === undefined)
      throw new InputError(`item ${JSON.stringify(itemId)} has no data that the app can fetch`);
    const dataHref = reachable(item.dataHref);
    requireAllowed(dataHref, allowedOrigins);
    return { ...item, dataHref };
  }

  /** Fetches one item, of at most `bytesLeft`. */
  async function fetchOne(
    reference: ItemReference,
    folder: string,
    bytesLeft: number,
    { kind, signal, onProgress, repeat }: FetchOptions,
  ): Promise<FetchedFile[]> {
    await mkdir(folder, { recursive: true });
    const path = join(folder, 'data');
    const onBytes = (bytes: number, total: number | null) => onProgress(total === null ? 0 : bytes / total);
    const findAndDownload = async () => {
      const found = await find(reference, signal);
      await client.download(
        { href: found.dataHref, allowedOrigins, path, maxBytes: bytesLeft, onProgress: onBytes },
        { signal },
      );
      return found;
    };
    // A link may expire during retries, so ask for a new one.
    const item = await repeat(() =>
      findAndDownload().catch((error: unknown) => {
        if (isLinkOver(error)) return findAndDownload();
        throw error;
      }),
    );
    const ofItem = factsOf(item);
    const unpacked = join(folder, 'unpacked');
    const archive: UnpackInput = { kind, limits: { entries: maxEntries, bytes: bytesLeft } };
    const answer = await runInChild<unknown>({
      ...{
        module: unpackJob,
        input: archive,
        files: [{ path, name: 'data' }],
        workFolder: unpacked,
        confinement,
        signal,
      },
      // Room for the last bytes before the job itself says that they are too many.
      limits: { ...limits, diskBytes: bytesLeft + unpackedSlackBytes },
    });
    if (answer === null) {
      // The interface promises an archive, but this may still be the file itself: opening it shows whether it is readable.
      const named = join(folder, plainName(item.title ?? item.id, kind));
      await rename(path, named);
      return [{ path: named, ofItem }];
    }
    await rm(path);
    // A child may answer anything, so accept only names in its own folder, never paths.
    const names = fileNames.parse(answer);
    if (names.length === 0)
      throw new InputError(
        `the data of item ${JSON.stringify(reference.itemId)} holds no ${kind === 'raster' ? 'raster' : 'features'}; looked for ${[...extensionsOf[kind]].join(' ')}`,
      );
    return names.map((name) => ({ path: join(unpacked, name), ofItem }));
  }

  return {
    async check(items, signal) {
      const found: CatalogItem[] = [];
      for (const item of items) found.push(await find(item, signal));
      return found;
    },
    async fetch(items, folder, options) {
      await removeFolder(folder);
      const files: FetchedFile[] = [];
      let bytesLeft = maxBytes - options.bytesTaken;
      for (const [i, item] of items.entries()) {
        const onProgress = (fraction: number) => options.onProgress((i + fraction) / items.length);
        const fetched = await fetchOne(item, join(folder, String(i)), bytesLeft, { ...options, onProgress });
        files.push(...fetched);
        for (const { path } of fetched) bytesLeft -= await requirePlainFile(path);
        if (files.length > maxFiles)
          throw new InputError(`the items hold more than ${maxFiles} files, the most that the app reads`);
      }
      return files;
    },
  };
}

function isLinkOver(error: unknown): boolean {
  return (
    error instanceof PlatformError &&
    error.endpoint === 'stac.data' &&
    [401, 403, 404, 410].includes(error.platformStatus ?? 0)
  );
}

function factsOf({ datetime = '', bands = [], sourceType, bbox }: CatalogItem): ItemFacts {
  const observed = new Date(datetime);
  const type = sourceTypes.find((known) => known === sourceType);
  const box = boxOf(bbox);
  return {
    ...(type !== undefined && { sourceType: type }),
    ...(box !== null && { bbox: box }),
    observedAt: Number.isNaN(observed.getTime()) ? null : observed.toISOString(),
    bands: itemBandsOf(bands),
  };
}

/** A bbox of three dimensions has the heights in third and sixth place. */
function boxOf(bbox: readonly number[] = []): readonly [number, number, number, number] | null {
  const flat = bbox.length === 6 ? bbox.filter((_number, i) => i % 3 !== 2) : bbox;
  const [west, south, east, north] = flat;
  if (flat.length !== 4 || west === undefined || south === undefined || east === undefined || north === undefined)
    return null;
  const isOnEarth = Math.max(Math.abs(west), Math.abs(east)) <= 180 && south >= -90 && south <= north && north <= 90;
  return isOnEarth ? [west, south, east, north] : null;
}

function itemBandsOf(bands: readonly CatalogBand[]): ItemBand[] {
  const read = bands.map((band): ItemBand => {
    const { scale: factor = 1, offset = 0, nodata = null } = band;
    const isSound = factor !== 0 && Number.isFinite(factor) && Number.isFinite(offset);
    return {
      names: namesOf(band).map((name) => name.replace(/\p{Cc}/gu, '_')),
      scale: isSound && (factor !== 1 || offset !== 0) ? { factor, offset } : null,
      nodata,
    };
  });
  return read.some(({ scale, nodata }) => scale !== null || nodata !== null) ? read : [];
}

/** A file name of a foreign title. */
function plainName(title: string, kind: InputKind): string {
  const plain = title.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 100);
  const isNamed = extensionsOf[kind].has(extname(plain).toLowerCase());
  return isNamed ? plain : `${plain || 'data'}${kind === 'raster' ? '.tif' : '.geojson'}`;
}
