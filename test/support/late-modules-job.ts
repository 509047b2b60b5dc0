/** Says what GDAL's bindings have read at their import, and what once they have wrapped a VRT. */
import { createRequire } from 'node:module';
import gdal from 'gdal-async';
import type { Job } from '../../src/raster/child/protocol.ts';

export interface ReadModules {
  readonly atImport: readonly string[];
  readonly later: readonly string[];
  readonly vrt: string;
}

const { cache } = createRequire(import.meta.url);

function readPackages(): string[] {
  const names = Object.keys(cache).map((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? '');
  return [...new Set(names)];
}

const job: Job<{ description: string }, ReadModules> = ({ description }) => {
  const atImport = readPackages();
  const source = gdal.open('source', 'w', 'MEM', 4, 4, 1, gdal.GDT_Byte);
  const vrt = gdal.wrapVRT({ bands: [{ sources: [source.bands.get(1)], description }] });
  return Promise.resolve({ atImport, later: readPackages(), vrt });
};
export default job;
