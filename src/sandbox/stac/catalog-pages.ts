import { Router } from 'express';
import { Eta } from 'eta';
import { requireOwnHost } from '../call/guards.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { methodNotAllowed } from '../error-boundary.ts';
import { kitFolder } from '../../files/index.ts';
import type { Catalog } from './catalog.ts';
import type { ItemSources } from './item-sources.ts';
import { catalogPaths } from './stac-objects.ts';
import { uploadsCatalogId, type CatalogRecord } from './collections.ts';

const templates = kitFolder('templates/sandbox');

/**
 * Serves a catalog's links `preview` and `about` (spec 2.1). They need no key, so they leave out collections of uploads:
 * nothing about users may show.
 */
export function catalogPages(catalog: Catalog, sources: ItemSources, publicUrl: () => string): Router {
  const router = Router({ caseSensitive: true });
  router.use('/catalogs', requireOwnHost(publicUrl));
  const eta = new Eta({ views: templates, cache: true });
  const { collections } = catalog;

  function getCatalog(id: string): CatalogRecord {
    const found = collections.findCatalog(id);
    if (!found) throw new SandboxError('catalog_not_found');
    return found;
  }
  /** Returns the collections of a catalog and of those below it, without users' uploads. */
  const collectionsUnder = (id: string): ReturnType<typeof collections.list> => [
    ...(id === uploadsCatalogId ? [] : collections.list(id)),
    ...collections.listCatalogs(id).flatMap((child) => collectionsUnder(child.id)),
  ];

  router
    .route(catalogPaths.preview)
    .get(async (req, res) => {
      const boxes = collectionsUnder(getCatalog(req.params['catalogId']).id).flatMap(({ id }) => {
        const extent = catalog.extentOf(id);
        return extent ? [extent.box] : [];
      });
      res
        .type('image/jpeg')
        .set('X-Content-Type-Options', 'nosniff')
        .send(Buffer.from(await sources.map(boxes)));
    })
    .all(methodNotAllowed('GET'));
  router
    .route(catalogPaths.about)
    .get((req, res) => {
      const found = getCatalog(req.params['catalogId']);
      res.set('Content-Security-Policy', "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'");
      res.type('html').send(
        eta.render('about-catalog', {
          catalog: found,
          catalogs: collections.listCatalogs(found.id),
          collections: collectionsUnder(found.id),
        }),
      );
    })
    .all(methodNotAllowed('GET'));
  return router;
}
