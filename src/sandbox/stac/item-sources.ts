import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ChildPool, isJobFailure, PoolBusyError, type Confinement, type LentFile } from '../../child/index.ts';
import { copyPlainFile, kitFolder } from '../../files/index.ts';
import { previewJob as resultJob, type PreviewJobInput } from '../../raster/index.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import type { Box } from '../../raster/footprint.ts';
import type { CatalogMapInput } from './catalog-map-job.ts';
import { shapeOf, type PreviewRequest } from './asset-links.ts';
import type { ItemRecord, SceneFile } from './items.ts';
import type { PreviewInput } from './preview-job.ts';

export interface ItemSourcesOptions {
  readonly dataDir: string;
  readonly blobDir: string;
  readonly overviewDir: string;
  readonly confinement: Confinement;
}

const previewJob = new URL('./preview-job.ts', import.meta.url);
const mapJob = new URL('./catalog-map-job.ts', import.meta.url);
const sceneJob = new URL('./scene-job.ts', import.meta.url);
const previewLimits = { timeoutMs: 30_000, memoryBytes: 1024 ** 3 };
const cacheBytes = 32 * 1024 * 1024;

/** Order for a picture: its input, its owner and its end. */
interface Order<Output> {
  readonly module: URL;
  readonly input: unknown;
  /** Turns go round the collections, and no process serves two of them. */
  readonly owner: string;
  readonly files?: readonly LentFile[];
  readonly signal?: AbortSignal | undefined;
  readonly collect?: (workFolder: string, output: Output) => Promise<void>;
}

/** Owner of the sandbox's own pictures. */
const ownMaking = 'sandbox';

export interface SourceFile {
  readonly path: string;
  readonly name: string;
}

/** Returns the path of a scene of the demo data. */
const shippedPath = (fileName: string) => kitFolder(`src/sandbox/scenes/${fileName}`);

/** In true colour where a scene has it; else its first band. */
function drawnOf(files: readonly SceneFile[]): SceneFile[] {
  const colors = ['red', 'green', 'blue'].flatMap((color) => files.find(({ name }) => name === color) ?? []);
  return colors.length === 3 ? colors : files.slice(0, 1);
}

/** The pixels behind the items: their previews, and the file that `data` streams. */
export class ItemSources {
  #options: ItemSourcesOptions;
  #pool: ChildPool;
  #sceneDir: string;
  #cache = new Map<string, Uint8Array>();
  /** Scenes that are being made, by their path: several readers at once wait for one of them. */
  #making = new Map<string, Promise<null>>();
  #cachedBytes = 0;

  constructor(options: ItemSourcesOptions) {
    this.#options = options;
    this.#sceneDir = join(options.dataDir, 'scenes');
    this.#pool = new ChildPool({
      confinement: options.confinement,
      folder: join(options.dataDir, 'work', 'previews'),
      limits: previewLimits,
    });
  }

  /** A PNG of exactly the size that is asked for. */
  async preview(item: ItemRecord, { box, width, height }: PreviewRequest, signal?: AbortSignal): Promise<Uint8Array> {
    const isClipped = item.source.kind === 'file' && item.source.isClipped;
    const input: PreviewInput = { footprint: item.footprint, isClipped, box, width, height };
    return this.#drawnOnce(JSON.stringify([item.source, item.footprint, box, width, height]), async () =>
      this.#picture({
        module: previewJob,
        input,
        owner: item.collectionId,
        files: await this.#lendRasters(item),
        signal,
      }),
    );
  }

  /** A WebP of at most `side` pixels a side, for lists. */
  async thumbnail(item: ItemRecord, side: number, signal?: AbortSignal): Promise<Uint8Array> {
    const isClipped = item.source.kind === 'file' && item.source.isClipped;
    const input: PreviewInput = {
      footprint: item.footprint,
      isClipped,
      box: item.box,
      ...shapeOf(item.box, side),
      format: 'webp',
    };
    return this.#drawnOnce(JSON.stringify([item.source, item.footprint, 'thumbnail', side]), async () =>
      this.#picture({
        module: previewJob,
        input,
        owner: item.collectionId,
        files: await this.#lendRasters(item),
        signal,
      }),
    );
  }

  /** A PNG of a raster that a model has made. */
  previewOfResult(path: string, maxSide: number, signal?: AbortSignal): Promise<Uint8Array> {
    const input: PreviewJobInput = { maxSide };
    return this.#picture({ module: resultJob, input, owner: path, files: [{ path, name: 'result.tif' }], signal });
  }

  async #drawnOnce(what: string, draw: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const key = createHash('sha256').update(what).digest('base64url');
    const picture = this.#cache.get(key) ?? (await draw());
    this.#remember(key, picture);
    return picture;
  }

  /** The files that an item was made of; none where it was made of none. Throws 404 where one is gone. */
  async files(item: ItemRecord): Promise<SourceFile[]> {
    const found = await this.#lendFiles(item);
    if (found.some(({ path }) => !existsSync(path))) throw new SandboxError('asset_not_available');
    return found;
  }

  /** Bytes of an item's files; null where it has none, they are gone, or code has not made them yet. */
  async sizeOf(item: ItemRecord): Promise<number | null> {
    if (item.source.kind === 'none' || item.source.kind === 'synthetic') return null;
    const sizes = await Promise.all(
      (await this.#lendFiles(item)).map(({ path }) =>
        stat(path).then(
          ({ size }) => size,
          () => null,
        ),
      ),
    );
    return sizes.reduce<number | null>((sum, size) => (sum === null || size === null ? null : sum + size), 0);
  }

  async #lendFiles({ source, title }: ItemRecord): Promise<SourceFile[]> {
    switch (source.kind) {
      case 'none':
        return [];
      case 'synthetic':
        return [{ path: await this.#makeScene(source.scene), name: `${title}.tif` }];
      case 'file':
        return [{ path: join(this.#options.blobDir, source.blob), name: source.fileName }];
      case 'path':
        return [{ path: source.path, name: basename(source.path) }];
      case 'shipped':
        return [{ path: shippedPath(source.fileName), name: source.fileName }];
      case 'scene':
        return source.files.map(({ path, fileName }) => ({ path, name: fileName }));
    }
  }

  /** A transparent picture, for a collection without items. */
  blank({ width, height }: { width: number; height: number }): Promise<Uint8Array> {
    const input: PreviewInput = {
      footprint: { type: 'Polygon', coordinates: [] },
      isClipped: false,
      box: [-180, -90, 180, 90],
      width,
      height,
    };
    return this.#picture({ module: previewJob, input, owner: ownMaking });
  }

  /** A JPEG of the globe with boxes on it. */
  map(boxes: readonly Box[]): Promise<Uint8Array> {
    const input: CatalogMapInput = { boxes };
    return this.#drawnOnce(JSON.stringify(['map', boxes]), () =>
      this.#picture({ module: mapJob, input, owner: ownMaking }),
    );
  }

  /** Returns a child's answer, which is a picture only if it is bytes. */
  async #picture(order: Order<unknown>): Promise<Uint8Array> {
    const answer = await this.#run(order);
    if (answer instanceof Uint8Array) return answer;
    throw new Error('could not make a picture: the child answered something else');
  }

  async #run<Output>({ files = [], ...order }: Order<Output>): Promise<Output> {
    const { confinement } = this.#options;
    if (confinement.kind === 'absent')
      throw new SandboxError('asset_not_available', {
        message: `The sandbox cannot make this file: ${confinement.summary}`,
      });
    // A failure here is the sandbox's, not the caller's: the cause goes to the log.
    return this.#pool.run<Output>({ ...order, files }).catch((cause: unknown) => {
      if (isJobFailure(cause)) throw new Error('could not make a picture', { cause });
      if (cause instanceof PoolBusyError) throw new SandboxError('busy', { message: 'Internal Server Error' });
      throw cause;
    });
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** Returns the rasters of a picture: one raster, or red, green and blue of a scene. */
  async #lendRasters(item: ItemRecord): Promise<LentFile[]> {
    const { source } = item;
    if ('isRaster' in source && !source.isRaster) return [];
    const files = await this.#lendFiles(
      source.kind === 'scene' ? { ...item, source: { ...source, files: drawnOf(source.files) } } : item,
    );
    if (source.kind !== 'file' || !source.hasOverviews) return files;
    const overviews = { suffix: '.ovr', path: join(this.#options.overviewDir, `${source.blob}.ovr`) };
    return files.map((file) => ({ ...file, beside: [overviews] }));
  }

  /** Returns the file of a generated scene, which it makes on the first call. The file is complete even if several processes make it at once. */
  async #makeScene(scene: SyntheticScene): Promise<string> {
    const path = join(
      this.#sceneDir,
      `${createHash('sha256').update(JSON.stringify(scene)).digest('hex').slice(0, 32)}.tif`,
    );
    if (existsSync(path)) return path;
    const making =
      this.#making.get(path) ??
      this.#run<null>({
        module: sceneJob,
        input: scene,
        owner: ownMaking,
        collect: (workFolder) => copyPlainFile(join(workFolder, 'scene.tif'), path),
      }).finally(() => this.#making.delete(path));
    this.#making.set(path, making);
    await making;
    return path;
  }

  #remember(key: string, png: Uint8Array): void {
    // It may be there already: it moves to the end, the last to be forgotten.
    this.#cachedBytes += png.length - (this.#cache.get(key)?.length ?? 0);
    this.#cache.delete(key);
    this.#cache.set(key, png);
    for (const [oldest, bytes] of this.#cache) {
      if (this.#cachedBytes <= cacheBytes) return;
      this.#cache.delete(oldest);
      this.#cachedBytes -= bytes.length;
    }
  }
}
