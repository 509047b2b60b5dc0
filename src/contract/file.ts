import * as z from 'zod';
import { limits } from './limits.ts';

/** Spec 2.8. */
export const sourceTypes = [
  'MULTISPECTRAL',
  'HYPERSPECTRAL',
  'SAR',
  'FULL_MOTION_VIDEO',
  'PANCHROMATIC',
  'POINT',
  'LINESTRING',
  'POLYGON',
  'HEIGHTMAP',
  'THERMAL',
  'GEOMETRYCOLLECTION',
  'TILES3D',
  'COMPLEX',
  'UNKNOWN',
  'ANNOTATION',
  'NETCDF',
  'LAND_SUBSIDENCE',
  'PDF',
  'IMAGE',
  'CZML',
] as const;
/** The kinds of data in a file (spec 2.8). */
export const sourceType = z.enum(sourceTypes);
/** The kind of data in a file (spec 2.8). */
export type SourceType = z.infer<typeof sourceType>;

/** Spec 3.2. */
export const fileStatuses = ['QUEUED', 'IN_PROGRESS', 'COMPLETED', 'FAILED'] as const;
/** The states of a file in the platform (spec 3.2). */
export const fileStatus = z.enum(fileStatuses);
/** The state of a file in the platform (spec 3.2). */
export type FileStatus = z.infer<typeof fileStatus>;

/** Those of Latin-1 (U+0080 to U+009F) too. */
const controlCharacter = /\p{Cc}/u;

/**
 * A file's name as the platform takes it: a name, never a path. `a..b.tif` is good.
 * @assumed file-name
 */
export const fileName = z
  .string()
  .min(1, 'must not be empty')
  .refine((name) => name !== '.' && name !== '..', 'must be a file name, not a directory')
  .refine((name) => !/[/\\]/.test(name), 'must not contain a path separator')
  .refine((name) => !controlCharacter.test(name), 'must not contain control characters')
  .refine((name) => name.isWellFormed(), 'must not contain half of a character (a lone surrogate)')
  .refine(
    (name) => Buffer.byteLength(name, 'utf8') <= limits.fileNameBytes,
    `must be at most ${limits.fileNameBytes} bytes of UTF-8`,
  );

/** The collection of the items of a user's files. @assumed uploads-collection */
export const collectionOfUploads = (userId: string): string => `uploads-${userId}`;

/**
 * The app's API key reads the uploads of all users, so the app itself keeps them apart (`SEPARATE_UPLOADS`).
 * @assumed uploads-of-all-users
 */
export const keyReadsAllUploads: boolean = true;
