import { externalAppEndpoints } from '../contract/index.ts';

/** Every call of the platform, by the name that faults, limits and traces use. */
export const platformEndpoints = [
  ...externalAppEndpoints,
  'file.upload',
  'file.generate',
  'file.chunk',
  'file.complete',
  'file.status',
  'file.download',
  'stac.browse',
  'stac.search',
  'stac.data',
  'stac.preview',
  'inference.models',
  'inference.run',
  'inference.status',
  'inference.download',
] as const;
export type PlatformEndpoint = (typeof platformEndpoints)[number];
