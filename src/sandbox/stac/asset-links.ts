import { stringify } from 'node:querystring';
import { limits } from '../../contract/index.ts';
import type { Box } from '../../raster/footprint.ts';
import { signedCalls } from '../call/signed-calls.ts';
import type { SandboxClock } from '../clock.ts';
import type { Signer } from '../secrets.ts';
import { invalid, SandboxError } from '../web/sandbox-error.ts';
import type { ItemRecord } from './items.ts';

const purpose = 'stac asset';

const defaultPreviewSide = 512;

export interface PreviewRequest {
  /** West may be greater than east. */
  readonly box: Box;
  readonly sourceId: string;
  readonly width: number;
  readonly height: number;
}

type Query = Readonly<Record<string, unknown>>;

/** Signed addresses of previews, data and thumbnails: no key, 24 hours, every parameter under the signature (spec 2.3). */
export class AssetLinks {
  #signer: Signer;
  #clock: SandboxClock;
  #publicUrl: () => string;

  constructor(signer: Signer, clock: SandboxClock, publicUrl: () => string) {
    this.#signer = signer;
    this.#clock = clock;
    this.#publicUrl = publicUrl;
  }

  /** Without a size: at most `defaultPreviewSide` pixels a side, in the shape of the item's box. */
  preview(item: ItemRecord, size: { width: number; height: number } = shapeOf(item.box)): string {
    return this.#sign(previewPath(item.collectionId, item.id), {
      bbox: item.box.join(','),
      sourceId: item.title,
      width: String(size.width),
      height: String(size.height),
    });
  }

  data(item: ItemRecord): string {
    return this.#sign(dataPath(item.collectionId, item.id), {});
  }

  /** `band`: of a scene, whose bands have a file each. */
  raster(item: ItemRecord, band?: string): string {
    return this.#sign(rasterPath(item.collectionId, item.id), band === undefined ? {} : { band });
  }

  thumbnail(collectionId: string): string {
    return this.#sign(thumbnailPath(collectionId), {});
  }

  /** Throws 403 for an altered or late address. */
  verify(path: string, query: Query): void {
    const { signature, expires } = query;
    // Proxies may reorder parameters.
    const values = Object.entries(query)
      .filter(([name]) => name !== 'signature')
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const isText =
      values.every(([, value]) => typeof value === 'string') &&
      typeof signature === 'string' &&
      typeof expires === 'string';
    if (!isText || !this.#signer.verify(signature, purpose, path, ...values.flat().map(String)))
      throw new SandboxError('link_invalid');
    if (this.#clock.now() >= Number(expires)) throw new SandboxError('link_expired');
  }

  #sign(path: string, values: Readonly<Record<string, string>>): string {
    const signed = { ...values, expires: String(this.#clock.now() + limits.downloadUrlMs) };
    const parts = [path];
    for (const entry of Object.entries(signed).sort(([a], [b]) => (a < b ? -1 : 1))) parts.push(...entry);
    const signature = this.#signer.sign(purpose, ...parts);
    // Three for each item of a page: `URLSearchParams` takes three times as long.
    return `${this.#publicUrl()}${path}?${stringify(signed)}&signature=${signature}`;
  }
}

function fill(path: string, collectionId: string, id = ''): string {
  return path.replace(':collectionId', encodeURIComponent(collectionId)).replace(':id', encodeURIComponent(id));
}
export const previewPath = (collectionId: string, id: string) => fill(signedCalls.getPreview.path, collectionId, id);
export const dataPath = (collectionId: string, id: string) => fill(signedCalls.getData.path, collectionId, id);
export const rasterPath = (collectionId: string, id: string) => fill(signedCalls.getRaster.path, collectionId, id);
export const thumbnailPath = (collectionId: string) => fill(signedCalls.getThumbnail.path, collectionId);

/** Reads the parameters of a preview, whatever item they are for. Throws 400. */
export function readPreviewQuery({ bbox, sourceId, width, height }: Query): Partial<PreviewRequest> {
  return {
    ...(bbox === undefined ? {} : { box: readBox(bbox) }),
    ...(typeof sourceId === 'string' ? { sourceId } : {}),
    ...(width === undefined ? {} : { width: readSide('width', width) }),
    ...(height === undefined ? {} : { height: readSide('height', height) }),
  };
}

/** Fills missing values from the item. */
export function previewOf(asked: Partial<PreviewRequest>, item: ItemRecord): PreviewRequest {
  return { box: item.box, sourceId: item.title, ...shapeOf(item.box), ...asked };
}

function readSide(name: string, value: unknown): number {
  const side = typeof value === 'string' && /^\d{1,6}$/.test(value) ? Number(value) : NaN;
  if (!(side >= 1 && side <= limits.previewSidePixels))
    throw invalid([{ path: name, message: `must be an integer from 1 to ${limits.previewSidePixels}` }]);
  return side;
}

function readBox(value: unknown): Box {
  const numbers =
    typeof value === 'string' ? value.split(',').map((part) => (part.trim() === '' ? NaN : Number(part))) : [];
  const [west = NaN, south = NaN, east = NaN, north = NaN] = numbers;
  const isBox =
    numbers.length === 4 &&
    Math.abs(west) <= 180 &&
    Math.abs(east) <= 180 &&
    south >= -90 &&
    north <= 90 &&
    south < north &&
    west !== east;
  if (!isBox) throw invalid([{ path: 'bbox', message: 'must be west,south,east,north in degrees, and not empty' }]);
  return [west, south, east, north];
}

/** Pixels of a preview in the shape of a box, as it is seen at its latitude. */
export function shapeOf(
  [west, south, east, north]: Box,
  longest: number = defaultPreviewSide,
): { width: number; height: number } {
  const lonDegrees = west <= east ? east - west : east + 360 - west;
  const ratio =
    (lonDegrees * Math.max(0.1, Math.cos((((south + north) / 2) * Math.PI) / 180))) / Math.max(1e-9, north - south);
  const side = (n: number) => Math.max(1, Math.min(longest, Math.round(n)));
  return ratio >= 1
    ? { width: longest, height: side(longest / ratio) }
    : { width: side(longest * ratio), height: longest };
}
