/** The seven calls of the external-app group (spec 4.8), by the names that faults, traces and errors use. */
export const externalAppEndpoints = [
  'token.renew',
  'user.detail',
  'operation.create',
  'operation.status',
  'upload.initiate',
  'upload.chunk',
  'upload.complete',
] as const;

/** A call of the external-app group (spec 4.8). */
export type ExternalAppEndpoint = (typeof externalAppEndpoints)[number];

/** Calls outside the external-app group that the kit's client can make (spec 4.1, 4.2, 4.4 to 4.7). */
export type FileEndpoint = 'file.generate' | 'file.chunk' | 'file.complete' | 'file.status' | 'file.download-url';
/** A call of the inference group (spec 4.7). */
export type InferenceEndpoint = 'inference.models' | 'inference.run' | 'inference.status' | 'inference.download';
/** `stac.data` is the temporary link of an item's `data` asset (spec 2.3). */
export type CatalogEndpoint = 'stac.catalog' | 'stac.collection' | 'stac.item' | 'stac.search' | 'stac.data';

/** A call of the platform, by the name that traces and errors use. */
export type Endpoint = ExternalAppEndpoint | FileEndpoint | InferenceEndpoint | CatalogEndpoint;
