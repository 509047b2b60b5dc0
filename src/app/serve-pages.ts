import type { Express } from 'express';
import type { WireProfile } from '../contract/index.ts';
import type { PlatformClient } from '../platform-client/index.ts';
import type { EventStreams } from '../server/index.ts';
import type { OwnUploads } from './catalog/own-uploads.ts';
import { catalogRoutes } from './catalog/routes.ts';
import { limitLaunches } from './launch/launch-limit.ts';
import { launchRoutes } from './launch/routes.ts';
import { launchSessions, rememberBegun, requireLaunchSession } from './launch/sessions.ts';
import { assetRoutes } from './pages/assets.ts';
import { launchPages } from './pages/launch-pages.ts';
import { opsPages } from './pages/ops-pages.ts';
import { runRoutes } from './runs/routes.ts';
import { requireSameOrigin } from './web/same-origin.ts';
import type { AppConfig } from './config.ts';
import type { AppDefinition } from './definition/app-definition.ts';
import { manifestOf } from './definition/check-definition.ts';
import type { Traces } from './monitoring/traces.ts';
import type { AppStores } from './open-stores.ts';
import type { Pages } from './pages/pages.ts';
import type { StepHost } from './processing/step-host.ts';
import type { RunEngine } from './runs/run-engine.ts';

/** The parts that the pages of an app use. */
export interface PageParts {
  readonly config: AppConfig;
  readonly definition: AppDefinition;
  readonly profile: WireProfile;
  readonly client: PlatformClient;
  readonly steps: StepHost;
  readonly engine: RunEngine;
  readonly stores: Pick<AppStores, 'runs' | 'launches' | 'sessions'>;
  readonly pages: Pages;
  readonly streams: EventStreams;
  readonly uploads: OwnUploads;
  readonly traces: Traces;
  readonly now: () => number;
}

/** The routes for people and for their browsers. */
export function servePages(app: Express, parts: PageParts): void {
  const { config, definition, profile, client, steps, engine, pages, streams, uploads, traces, now } = parts;
  const { runs: store, launches, sessions } = parts.stores;
  app.use(assetRoutes(definition));
  app.get('/manifest', (_req, res) => void res.json(manifestOf(definition)));
  app.get(
    '/',
    (_req, res) => void res.type('html').send(pages.render('home', { marketplace: config.platformPublicUrl })),
  );
  if (config.adminKey) app.use('/ops', opsPages({ key: config.adminKey, store, pages, now }));
  app.use('/launch', limitLaunches(config.launchesPerMinute), rememberBegun(config));
  app.use(['/launch', '/launches/:launchId'], launchSessions(config, sessions));
  app.use(launchRoutes({ client, launches, profile, now, traceLaunch: (begin) => traces.launch(begin) }));
  app.use('/launches/:launchId', requireLaunchSession, requireSameOrigin);
  app.use(
    '/launches/:launchId',
    launchPages({
      pages,
      launches,
      store,
      engine,
      steps,
      streams,
      client,
      mayUse: (launch, collectionId) => uploads.mayUse(launch, collectionId),
      platformUrl: config.platformPublicUrl,
      profile,
      appPages: definition.pages,
    }),
  );
  app.use('/launches/:launchId/api', catalogRoutes({ client, steps, launches, uploads }));
  app.use(
    '/launches/:launchId/api',
    runRoutes({ ...config, platformUrl: config.platformPublicUrl, launches, store, engine, steps, uploads }),
  );
}
