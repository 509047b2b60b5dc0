import { existsSync, readdirSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { KitError } from '../contract/kit-error.ts';
import type { Confinement } from './confinement.ts';

/** Reason why no child process can open a file here; null if GDAL's binding and sharp are installed. */
export function gdalProblem(): string | null {
  const manifest = manifestOf('gdal-async');
  const binding = manifest && join(dirname(manifest), 'lib', 'binding');
  const isBuilt =
    binding !== undefined &&
    existsSync(binding) &&
    readdirSync(binding, { recursive: true }).some((name) => /\.node$/.test(String(name)));
  if (!isBuilt) return 'GDAL is not installed here (npm install gdal-async)';
  return manifestOf('sharp') === undefined ? 'sharp is not installed here (npm install sharp)' : null;
}

function manifestOf(name: string): string | undefined {
  try {
    return findPackageJSON(name, import.meta.url);
  } catch {
    return undefined;
  }
}

/** A machine without GDAL: it starts no child process, so no foreign file is opened. Each job throws `KitError` (`not_installed`). */
export function noChildren(reason: string): Confinement {
  const refuse = (): never => {
    throw new KitError('not_installed', reason);
  };
  return {
    kind: 'absent',
    summary: reason,
    weaknesses: [],
    gdalVersion: '',
    ownFolders: [],
    filter: null,
    command: refuse,
    newUser: () => null,
    group: () => null,
    warmUp: () => {},
    environment: () => ({}),
  };
}
