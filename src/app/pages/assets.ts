import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import compression from 'compression';
import { Router, static as serveStatic } from 'express';
import { kitFolder, vendoredFolders } from '../../files/index.ts';
import type { AppDefinition } from '../definition/app-definition.ts';

/**
 * Style sheets, modules and pictures of the pages, below `/assets`: the app's own where it has one of that name, else the
 * kit's; those of installed packages by `templates/shared/vendored.json`. `/assets/icon` is the app's icon.
 */
export function assetRoutes({ templates, icon }: Pick<AppDefinition, 'templates' | 'icon'>): Router {
  const own = templates ? fileURLToPath(templates) : null;
  const files = (folder: string) => serveStatic(folder, { index: false, setHeaders: fresh });
  const router = Router();
  router.use('/assets', compression());
  router.get('/assets/icon', (_req, res) => {
    fresh(res);
    const path = icon ? fileURLToPath(icon) : kitFolder('templates/shared/mark.svg');
    // By its folder: a package manager may have put that below one whose name begins with a dot.
    res.sendFile(basename(path), { root: dirname(path) });
  });
  if (own !== null) router.use('/assets/shared', files(join(own, 'shared')));
  router.use('/assets/shared', files(kitFolder('templates/shared')));
  for (const [name, folder] of vendoredFolders())
    router.use(`/assets/vendor/${name}`, serveStatic(folder, { index: false, setHeaders: kept }));
  if (own !== null) router.use('/assets', files(join(own, 'assets')));
  router.use('/assets', files(kitFolder('templates/app/assets')));
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
