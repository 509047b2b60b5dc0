/**
 * Runs before GDAL is loaded. gdal-async loads 250 modules, 230 of them to search for its binding and to write XML, which
 * costs each child 0.2 s of CPU and 10 MiB. The binding lies where its package says, and XML is loaded when it is wanted.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const gdal = require.resolve('gdal-async');
const requireInGdal = createRequire(gdal);
const abi = `node-v${process.versions.modules}-${process.platform}-${process.arch}`;
const binding = join(dirname(gdal), 'binding', abi, 'gdal.node');

if (existsSync(binding)) replace('@mapbox/node-pre-gyp', () => ({ find: () => binding }));
replace('xmlbuilder2', (load) => ({ fragment: (...args: unknown[]) => load()['fragment']?.(...args) }));

type Loaded = Record<string, ((...args: unknown[]) => unknown) | undefined>;

/** Gives gdal-async `make`'s result in place of a package. */
function replace(name: string, make: (load: () => Loaded) => Loaded): void {
  const path = requireInGdal.resolve(name);
  const load = () => {
    delete require.cache[path];
    return requireInGdal(name) as Loaded;
  };
  require.cache[path] = { id: path, filename: path, loaded: true, exports: make(load) } as NodeJS.Module;
}
