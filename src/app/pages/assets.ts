import { Router, static as serveStatic } from 'express';
import { fileURLToPath } from 'node:url';

const projectFolder = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));

/** Folders of installed packages that pages load from, so that nothing comes from elsewhere. */
const vendored: Readonly<Record<string, string>> = {
  'maplibre-gl': projectFolder('node_modules/maplibre-gl/dist'),
  'world-atlas': projectFolder('node_modules/world-atlas'),
  'topojson-client': projectFolder('node_modules/topojson-client/src'),
  idiomorph: projectFolder('node_modules/idiomorph/dist'),
};

/** Style sheets and modules of the pages, below `/assets`. */
export function assetRoutes(): Router {
  const router = Router();
  router.use('/assets/shared', serveStatic(projectFolder('templates/shared'), { index: false }));
  for (const [name, folder] of Object.entries(vendored)) router.use(`/assets/vendor/${name}`, serveStatic(folder, { index: false, maxAge: '1d' }));
  router.use('/assets', serveStatic(projectFolder('templates/app/assets'), { index: false }));
  return router;
}
