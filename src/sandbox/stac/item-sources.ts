import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ChildJobError, ChildPool, PoolBusyError } from '../../raster/index.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import type { Box } from '../../raster/footprint.ts';
import type { CatalogMapInput } from './catalog-map-job.ts';
import type { PreviewRequest } from './asset-links.ts';
import type { ItemRecord, ItemSource } from './items.ts';
import type { PreviewInput } from './preview-job.ts';

export interface ItemSourcesOptions {
  readonly dataDir: string;
  readonly blobDir: string;
  readonly overviewDir: string;
}

const previewJob = new URL('./preview-job.ts', import.meta.url);
const mapJob = new URL('./catalog-map-job.ts', import.meta.url);
const sceneJob = new URL('./scene-job.ts', import.meta.url);
const previewLimits = { timeoutMs: 30_000, memoryBytes: 1024 ** 3 };
const cacheBytes = 32 * 1024 * 1024;

/** The pixels behind the items: their previews, and the file that `data` streams. */
export class ItemSources {
  #options: ItemSourcesOptions;
  #pool: ChildPool;
  #workFolder: string;
  #sceneDir: string;
  #cache = new Map<string, Uint8Array>();
  #cachedBytes = 0;

  constructor(options: ItemSourcesOptions) {
    this.#options = options;
    this.#workFolder = join(options.dataDir, 'work', 'previews');
    this.#sceneDir = join(options.dataDir, 'scenes');
    this.#pool = new ChildPool({ folder: this.#workFolder });
  }

  /** A PNG of exactly the size that is asked for. */
  async preview(item: ItemRecord, { box, width, height }: PreviewRequest): Promise<Uint8Array> {
    const raster = this.#rasterOf(item.source);
    const isClipped = item.source.kind === 'file' && item.source.isClipped;
    const scene = item.source.kind === 'synthetic' ? item.source.scene : null;
    const input: PreviewInput = { raster, scene, footprint: item.footprint, isClipped, box, width, height, workFolder: this.#workFolder };
    return this.#drawnOnce(JSON.stringify([item.source, item.footprint, box, width, height]), () => this.#run<Uint8Array>(previewJob, input));
  }

  async #drawnOnce(what: string, draw: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const key = createHash('sha256').update(what).digest('base64url');
    const picture = this.#cache.get(key) ?? (await draw());
    this.#remember(key, picture);
    return picture;
  }

  /** The file that an item was made of; null where it was made of none. Throws 404 where it is gone. */
  async file(item: ItemRecord): Promise<{ path: string; name: string } | null> {
    const { source } = item;
    if (source.kind === 'none') return null;
    if (source.kind === 'synthetic') {
      const path = this.#scenePath(source.scene);
      if (!existsSync(path)) await this.#run(sceneJob, { path, scene: source.scene });
      return { path, name: `${item.title}.tif` };
    }
    const found = source.kind === 'file' ? { path: join(this.#options.blobDir, source.blob), name: source.fileName } : { path: source.path, name: basename(source.path) };
    if (!existsSync(found.path)) throw new SandboxError(404, 'asset_not_available', 'The source file is not there any more');
    return found;
  }

  /** A transparent picture, for a collection without items. */
  blank({ width, height }: { width: number; height: number }): Promise<Uint8Array> {
    const nothing: PreviewInput = { raster: null, scene: null, footprint: { type: 'Polygon', coordinates: [] }, isClipped: false, box: [-180, -90, 180, 90], width, height, workFolder: this.#workFolder };
    return this.#run<Uint8Array>(previewJob, nothing);
  }

  /** A JPEG of the globe with boxes on it. */
  map(boxes: readonly Box[]): Promise<Uint8Array> {
    return this.#drawnOnce(JSON.stringify(['map', boxes]), () => this.#run<Uint8Array>(mapJob, { boxes } satisfies CatalogMapInput));
  }

  async #run<Output>(module: URL, input: unknown): Promise<Output> {
    await Promise.all([mkdir(this.#sceneDir, { recursive: true }), mkdir(this.#workFolder, { recursive: true })]);
    // What fails here is ours, not the caller's: the cause goes to the log.
    return this.#pool.run<Output>({ module, input, workFolder: this.#workFolder, limits: previewLimits }).catch((cause: unknown) => {
      if (cause instanceof ChildJobError) throw new Error('a picture could not be made', { cause });
      if (cause instanceof PoolBusyError) throw new SandboxError(503, 'busy', 'Internal Server Error');
      throw cause;
    });
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #rasterOf(source: ItemSource): PreviewInput['raster'] {
    if (source.kind === 'synthetic') return { path: this.#scenePath(source.scene), name: 'scene.tif', overviewPath: null };
    if (source.kind === 'none' || !source.isRaster) return null;
    if (source.kind === 'path') return { path: source.path, name: basename(source.path), overviewPath: null };
    const overviewPath = source.hasOverviews ? join(this.#options.overviewDir, `${source.blob}.ovr`) : null;
    return { path: join(this.#options.blobDir, source.blob), name: source.fileName, overviewPath };
  }

  #scenePath(scene: SyntheticScene): string {
    return join(this.#sceneDir, `${createHash('sha256').update(JSON.stringify(scene)).digest('hex').slice(0, 32)}.tif`);
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
