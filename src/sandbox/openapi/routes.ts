import { Router, type RequestHandler } from 'express';
import swaggerUi from 'swagger-ui-express';
import { requireOwnHost } from '../control/guards.ts';
import { methodNotAllowed } from '../web/error-boundary.ts';
import { openApi31 } from './document.ts';

export const openApiPath = '/openapi.json';
const pagePath = '/docs';

/** Swagger UI draws with styles of its own; its scripts come from here and nothing comes from elsewhere. */
const pagePolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'";

/** The description of every call, and a page to read and try it. Both without a key: they say nothing of what is kept here. */
export function openApiRoutes(publicUrl: () => string): Router {
  const router = Router({ caseSensitive: true });
  const page = swaggerUi.setup(undefined, {
    customSiteTitle: 'Sandbox API',
    // No badge: it would ask a validator on the network.
    swaggerOptions: { url: openApiPath, validatorUrl: null, docExpansion: 'list', tryItOutEnabled: true },
  });
  router.use([openApiPath, pagePath], requireOwnHost(publicUrl));
  router
    .route(openApiPath)
    .get((_req, res) => void res.json(openApi31('/')))
    .all(methodNotAllowed('GET'));
  const guardPage: RequestHandler = (_req, res, next) => {
    res.set({ 'Content-Security-Policy': pagePolicy, 'X-Content-Type-Options': 'nosniff' });
    next();
  };
  router.use(pagePath, guardPage, swaggerUi.serve, page);
  return router;
}
