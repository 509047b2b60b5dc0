import type { SourceType } from '../../contract/index.ts';

/** Kind of check for a source type's claim. */
export type FileKind = 'raster' | 'vector' | 'pdf' | 'image' | 'czml' | 'tiles3d' | 'video' | 'any';

/** @assumed source-types: what the platform takes for each of the spec's twenty source types (section 2.8) */
export const kindOf: Readonly<Record<SourceType, FileKind>> = {
  MULTISPECTRAL: 'raster',
  HYPERSPECTRAL: 'raster',
  SAR: 'raster',
  PANCHROMATIC: 'raster',
  HEIGHTMAP: 'raster',
  THERMAL: 'raster',
  COMPLEX: 'raster',
  LAND_SUBSIDENCE: 'raster',
  NETCDF: 'raster',
  POINT: 'vector',
  LINESTRING: 'vector',
  POLYGON: 'vector',
  GEOMETRYCOLLECTION: 'vector',
  ANNOTATION: 'vector',
  PDF: 'pdf',
  IMAGE: 'image',
  CZML: 'czml',
  TILES3D: 'tiles3d',
  FULL_MOTION_VIDEO: 'video',
  UNKNOWN: 'any',
};
