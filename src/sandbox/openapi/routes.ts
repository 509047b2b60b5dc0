import { Router } from 'express';
import { requireOwnHost } from '../call/guards.ts';
import { methodNotAllowed } from '../error-boundary.ts';
import { ownOpenApi } from './document.ts';

export const openApiPath = '/openapi.json';

/** The description of every call; `/docs` is a page to read and try it. Without a key: it says nothing of what is kept here. */
export function openApiRoutes(publicUrl: () => string): Router {
  const router = Router({ caseSensitive: true });
  router.use(openApiPath, requireOwnHost(publicUrl));
  router
    .route(openApiPath)
    .get((_req, res) => void res.json(ownOpenApi()))
    .all(methodNotAllowed('GET'));
  return router;
}
