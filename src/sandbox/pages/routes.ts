import compression from 'compression';
import { Router, type ErrorRequestHandler } from 'express';
import { permissions } from '../../contract/index.ts';
import { requireOwnHost } from '../call/guards.ts';
import type { SandboxDatabase } from '../database.ts';
import { beforePageCall } from '../call/before-call.ts';
import { fileRoutes, type FileRoutesOptions } from '../files/routes.ts';
import type { ApiKeys, KnownKeys } from '../identity/api-keys.ts';
import { inferenceRoutes, type InferenceRoutesOptions } from '../inference/routes.ts';
import type { Signer } from '../secrets.ts';
import type { StacObjects } from '../stac/stac-objects.ts';
import { contextOf } from '../web/call-context.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { apiPage } from './api-page.ts';
import { approvalPages } from './approval-pages.ts';
import { assetRoutes } from './assets.ts';
import { catalogBrowser } from './catalog-browser.ts';
import { filePages, type FilePagesOptions } from './file-pages.ts';
import { launchPages, type LaunchPagesOptions } from './launch-pages.ts';
import { liveChanges } from './live-changes.ts';
import type { AssetLinks } from '../stac/asset-links.ts';
import type { Topics } from '../slices.ts';
import { marketplacePages } from './marketplace-pages.ts';
import { requirePageAccess, signInRoutes } from './page-access.ts';
import { pageRenderer } from './page.ts';
import { sceneUploads, type SceneUploadsOptions } from './scene-uploads.ts';

export interface SandboxPagesOptions extends Omit<LaunchPagesOptions, 'render'>, Omit<FilePagesOptions, 'render'> {
  readonly keys: ApiKeys;
  readonly database: SandboxDatabase;
  readonly topics: Topics;
  readonly signer: Signer;
  readonly adminKey: string | null;
  readonly mapTiles: string | null;
  readonly publicUrl: () => string;
  readonly objects: StacObjects;
  readonly assets: AssetLinks;
  readonly sceneUploads: SceneUploadsOptions;
  readonly fileApi: Omit<FileRoutesOptions, 'before'>;
  readonly inferenceApi: Omit<InferenceRoutesOptions, 'before'>;
}

/** The platform's calls as the sandbox's own pages make them: whoever may see the pages needs no key. */
const browserApi = '/browser';
const isOfPages =
  /^\/(?:$|(?:events|marketplace|approvals|catalog|files|inference|launches|requests|reset|docs|browser)(?:\/|$))/;
/** Answers of these are for programs, whoever asks. */
const isOfApi = /^\/(public|sandbox|catalogs|openapi\.json|browser)(\/|$)/;
/** Addresses that the pages' own scripts call; their responses are JSON. */
const isForScripts = /^\/(browser\/|files\/scenes|inference\/scenes|docs\/key)/;
const compressed = compression();
const pageKeys: KnownKeys = { find: () => ({ id: 'pages', permissions, appId: null, createdAtMs: 0 }) };

/** The sandbox's pages: what a person does with a browser. */
export function sandboxPages(options: SandboxPagesOptions): Router {
  const { apps, operations, database, topics, signer, adminKey, clock, publicUrl } = options;
  const router = Router({ caseSensitive: true });
  const render = pageRenderer({ apps, mapTiles: options.mapTiles, pendingCount: () => operations.countRequested() });

  const access = requirePageAccess(adminKey, signer, () => clock.machineNow());
  const guarded = Router({ caseSensitive: true });
  guarded.use((req, _res, next) => next(isOfPages.test(req.path) ? undefined : 'router'));
  guarded.use(requireOwnHost(publicUrl), access);
  guarded.get('/events', liveChanges(database, topics));
  // Pages alone: a file is what it is.
  guarded.use((req, res, next) => (req.path.startsWith(browserApi) ? next() : compressed(req, res, next)));
  /** Launches whose app a page of the sandbox shows, the newest 200. */
  const framed = new Set<string>();
  const onFramed = (launchId: string) => {
    framed.add(launchId);
    for (const oldest of framed) if (framed.size > 200) framed.delete(oldest);
  };
  guarded.use(marketplacePages({ ...options, render, onFramed }));
  guarded.use(approvalPages({ ...options, render, isFramed: (launchId) => framed.has(launchId) }));
  guarded.use(catalogBrowser({ ...options, render }));
  guarded.use(filePages({ ...options, render }), sceneUploads(options.sceneUploads));
  guarded.use(launchPages({ ...options, render }));
  guarded.use(apiPage({ ...options, render }));
  guarded.use(
    browserApi,
    fileRoutes({ ...options.fileApi, before: beforePageCall(pageKeys) }),
    inferenceRoutes({ ...options.inferenceApi, before: beforePageCall(pageKeys) }),
  );

  router.use(assetRoutes());
  if (adminKey !== null)
    router.use(
      signInRoutes({
        adminKey,
        signer,
        now: () => clock.machineNow(),
        render,
        isSecure: () => publicUrl().startsWith('https:'),
      }),
    );
  router.use(guarded);
  // A person who has mistyped an address; programs are told by JSON.
  router.use((req, _res, next) =>
    next(
      req.method === 'GET' && req.accepts(['json', 'html']) === 'html' && !isOfApi.test(req.path)
        ? new SandboxError('path_not_found')
        : undefined,
    ),
  );
  router.use(((error: unknown, req, res, next) => {
    if (!(error instanceof SandboxError) || isForScripts.test(req.originalUrl) || res.headersSent) return next(error);
    render(res.status(error.status), 'error', {
      status: error.status,
      path: error.code === 'path_not_found' ? req.path : null,
      message: error.message,
      details: error.details ?? [],
      code: error.code,
      requestId: contextOf(res).requestId,
    });
  }) satisfies ErrorRequestHandler);
  return router;
}
