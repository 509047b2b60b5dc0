/**
 * Imported before GDAL's bindings are: what they import only in case is read when it is used, which halves what their import
 * takes. Where Node has no such hooks, or other bindings import otherwise, everything is as without it.
 */
import module from 'node:module';

/** By the file that imports it, and the name by which it does. */
const late: Readonly<Record<string, URL>> = {
  '/gdal-async/lib/gdal.js @mapbox/node-pre-gyp': new URL('./late-binding-path.ts', import.meta.url),
  '/gdal-async/lib/wrapVRT.js xmlbuilder2': new URL('./late-xmlbuilder.ts', import.meta.url),
};
const importer = /\/gdal-async\/lib\/\w+\.js$/;

// Not before Node 22.15.
const { registerHooks }: Partial<typeof module> = module;
registerHooks?.({
  resolve(specifier, context, next) {
    const [from] = importer.exec(context.parentURL ?? '') ?? [];
    const instead = from === undefined ? undefined : late[`${from} ${specifier}`];
    return instead ? { url: instead.href, shortCircuit: true } : next(specifier, context);
  },
});
