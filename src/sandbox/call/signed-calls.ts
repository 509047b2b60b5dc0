import * as z from 'zod';
import { mediaTypes, stacPaths, type CallFacts, type Endpoint } from '../../contract/index.ts';

/** A call by a signed address of the sandbox. No key is needed, and every parameter stands under the signature. */
export interface SignedCall extends CallFacts {
  readonly endpoint: Endpoint;
  /** Answers parts of a file, by the header Range (206, 416). */
  readonly takesRange?: boolean;
}

const signature = { expires: z.string().optional(), signature: z.string().optional() };
const ofItem = { group: 'Catalog', section: '2.3', method: 'GET' } as const;

/** Addresses that the sandbox signs, by name. */
export const signedCalls = {
  getPreview: {
    ...ofItem,
    endpoint: 'stac.preview',
    summary: 'Rendered preview of an item',
    description:
      'A PNG of exactly `width` x `height` pixels, of the part of the item that `bbox` names. Transparent outside the footprint. Items link to it.',
    path: `${stacPaths.item}/preview`,
    query: z.object({
      bbox: z.string().optional(),
      sourceId: z.string().optional(),
      width: z.string().optional(),
      height: z.string().optional(),
      ...signature,
    }),
    mediaType: mediaTypes.png,
    errors: { 400: null, 403: null, 404: null, 500: null, 503: null },
  },
  getData: {
    ...ofItem,
    endpoint: 'stac.data',
    takesRange: true,
    summary: 'Source data of an item',
    description: 'A zip with the files of the item and the item itself as JSON. Items link to it for 24 hours.',
    path: `${stacPaths.item}/data`,
    query: z.object(signature),
    mediaType: mediaTypes.zip,
    errors: { 403: null, 404: null, 500: null, 503: null },
  },
  getRaster: {
    ...ofItem,
    endpoint: 'stac.data',
    takesRange: true,
    summary: 'Source raster of an item, for clients that read pixels',
    description: 'The raster of the item, or one band of its scene, for clients that read parts of it by Range.',
    path: `${stacPaths.item}/raster`,
    query: z.object(signature),
    mediaType: 'application/octet-stream',
    errors: { 403: null, 404: null, 500: null },
  },
  getThumbnail: {
    ...ofItem,
    section: '2.2',
    endpoint: 'stac.preview',
    summary: 'Thumbnail of a collection',
    description: 'A PNG of the newest item of the collection. Collections link to it.',
    path: `${stacPaths.collection}/thumbnail`,
    query: z.object(signature),
    mediaType: mediaTypes.png,
    errors: { 403: null, 404: null, 500: null, 503: null },
  },
  download: {
    endpoint: 'file.download',
    group: 'Files',
    section: '4.6',
    takesRange: true,
    summary: 'A file, by its signed address',
    description: 'The bytes of a file, whole or by Range, at the address that `getDownloadUrl` answers.',
    method: 'GET',
    path: '/download/:fileId',
    query: z.object({ expires: z.string(), type: z.string(), signature: z.string() }),
    mediaType: 'application/octet-stream',
    errors: { 403: null, 404: null, 500: null },
  },
} as const satisfies Readonly<Record<string, SignedCall>>;
