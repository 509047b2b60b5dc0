/**
 * Imported before GDAL's bindings are: what they import only in case is read when it is used, which halves what their import
 * takes. Where Node has no such hooks everything is as without it. A test holds what the bindings use of these modules.
 */
import module from 'node:module';
import { pathToFileURL } from 'node:url';

/** The kit's own bindings: a step's project may have others. */
const bindings = pathToFileURL(module.createRequire(import.meta.url).resolve('gdal-async'));
const nameOf = (importer: string, imported: string) => `${new URL(importer, bindings).href} ${imported}`;

/** By the file that imports it, and the name by which it does. */
const late: Readonly<Record<string, URL>> = {
  [nameOf('gdal.js', '@mapbox/node-pre-gyp')]: new URL('./late-binding-path.ts', import.meta.url),
  [nameOf('wrapVRT.js', 'xmlbuilder2')]: new URL('./late-xmlbuilder.ts', import.meta.url),
};

// Not before Node 22.15.
const { registerHooks }: Partial<typeof module> = module;
registerHooks?.({
  resolve(specifier, context, next) {
    const instead = late[`${context.parentURL} ${specifier}`];
    return instead ? { url: instead.href, shortCircuit: true } : next(specifier, context);
  },
});
