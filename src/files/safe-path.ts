import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, sep } from 'node:path';
import { KitError } from '../contract/kit-error.ts';

/** A path that may not be opened. */
export class UnsafePathError extends KitError {
  constructor(path: string, rule: string) {
    super('unsafe_path', `${JSON.stringify(path.slice(0, 200))} ${rule}`, {
      status: 400,
      data: { path: path.slice(0, 200) },
    });
  }
}

/**
 * Resolves a user's relative path inside `root`. Refused with `UnsafePathError`: GDAL's virtual file
 * systems, addresses, absolute paths, `..`, NUL, and links that lead out of `root`.
 */
export async function resolveInside(root: string, path: string): Promise<string> {
  if (path === '' || path.includes('\0')) throw new UnsafePathError(path, 'is not a path');
  if (/^[\\/]?vsi[a-z0-9_]*([\\/]|$)/i.test(path))
    throw new UnsafePathError(path, 'is a virtual file system of GDAL; a plain relative path is expected');
  if (/^[A-Za-z][A-Za-z0-9+._-]*:/.test(path))
    throw new UnsafePathError(path, 'is an address or a driver prefix; a plain relative path is expected');
  if (isAbsolute(path) || path.startsWith('\\'))
    throw new UnsafePathError(path, 'is an absolute path; a path relative to the input folder is expected');
  if (path.split(/[\\/]/).includes('..')) throw new UnsafePathError(path, 'leaves the input folder');
  const [realRoot, real] = await Promise.all([root, join(root, path)].map((part) => realpath(part).catch(() => null)));
  if (!realRoot || !real) throw new UnsafePathError(path, 'does not exist in the input folder');
  if (real !== realRoot && !real.startsWith(realRoot + sep))
    throw new UnsafePathError(path, 'is a link that leaves the input folder');
  return real;
}

/** Works like `resolveInside`, and requires a regular file. */
export async function resolveFileInside(root: string, path: string): Promise<string> {
  const real = await resolveInside(root, path);
  if (!(await stat(real)).isFile()) throw new UnsafePathError(path, 'is not a regular file');
  return real;
}
