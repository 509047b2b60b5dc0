import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import compression from 'compression';
import { Router, static as serveStatic } from 'express';

const projectFolder = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));

/** Style sheets and modules of the pages, below `/assets`; those of installed packages by `templates/shared/vendored.json`. */
export function assetRoutes(): Router {
  const vendored = JSON.parse(readFileSync(projectFolder('templates/shared/vendored.json'), 'utf8')) as Readonly<
    Record<string, string>
  >;
  const router = Router();
  router.use('/assets', compression());
  router.use('/assets/shared', serveStatic(projectFolder('templates/shared'), { index: false, setHeaders: fresh }));
  for (const [name, folder] of Object.entries(vendored))
    router.use(
      `/assets/vendor/${name}`,
      serveStatic(projectFolder(`node_modules/${folder}`), { index: false, setHeaders: kept }),
    );
  router.use('/assets', serveStatic(projectFolder('templates/sandbox/assets'), { index: false, setHeaders: fresh }));
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
