/** Stands for `xmlbuilder2` where GDAL's bindings import it: read by the first VRT that they wrap. */
import { createRequire } from 'node:module';

type Fragment = (...given: readonly unknown[]) => unknown;

// It is a dependency of theirs, and none of ours.
const requireBeside = createRequire(createRequire(import.meta.url).resolve('gdal-async/package.json'));

export const fragment: Fragment = (...given) =>
  (requireBeside('xmlbuilder2') as { readonly fragment: Fragment }).fragment(...given);
