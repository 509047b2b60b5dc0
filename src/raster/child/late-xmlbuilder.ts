/** Stands for `xmlbuilder2` where GDAL's bindings import it: read by the first VRT that they wrap. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

type Fragment = (...given: readonly unknown[]) => unknown;

// It is a dependency of theirs, and none of ours. Not from their own folder, where Node has noted this module by its name.
const bindings = pathToFileURL(createRequire(import.meta.url).resolve('gdal-async'));
const requireBeside = createRequire(new URL('../', bindings));

export const fragment: Fragment = (...given) =>
  (requireBeside('xmlbuilder2') as { readonly fragment: Fragment }).fragment(...given);
