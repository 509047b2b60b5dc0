import compression from 'compression';
import { Router, static as serveStatic } from 'express';
import { kitFolder, vendoredFolders } from '../../files/index.ts';

/** Style sheets and modules of the pages, below `/assets`; those of installed packages by `templates/shared/vendored.json`. */
export function assetRoutes(): Router {
  const router = Router();
  router.use('/assets', compression());
  router.use('/assets/shared', serveStatic(kitFolder('templates/shared'), { index: false, setHeaders: fresh }));
  for (const [name, folder] of vendoredFolders())
    router.use(`/assets/vendor/${name}`, serveStatic(folder, { index: false, setHeaders: kept }));
  router.use('/assets', serveStatic(kitFolder('templates/sandbox/assets'), { index: false, setHeaders: fresh }));
  return router;
}

/** Our own may change at any start: asked for anew, and answered by 304 where they have not. */
function fresh(res: { setHeader(name: string, value: string): void }): void {
  res.setHeader('Cache-Control', 'public, max-age=0');
}

/** Those of a package change with its version. */
function kept(res: { setHeader(name: string, value: string): void }): void {
  res.setHeader('Cache-Control', 'public, max-age=86400');
}
