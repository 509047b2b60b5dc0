/** Stands for `@mapbox/node-pre-gyp` where GDAL's bindings ask it for nothing but the path of their library. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { arch, platform, versions } from 'node:process';

interface Finder {
  find(packagePath: string): string;
}

/** The library that was installed for this Node, by the name that the package gives it; what the real one finds where there is none. */
export function find(packagePath: string): string {
  const place = `node-v${versions.modules}-${platform}-${arch}`;
  const path = join(dirname(packagePath), 'lib', 'binding', place, 'gdal.node');
  return existsSync(path) ? path : (createRequire(packagePath)('@mapbox/node-pre-gyp') as Finder).find(packagePath);
}
