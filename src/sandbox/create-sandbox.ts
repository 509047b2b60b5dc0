import type { RequestListener } from 'node:http';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import express, { type RequestHandler } from 'express';
import type { Logger } from 'pino';
import { assumedProfile, type WireProfile } from '../contract/index.ts';
import { type Confinement } from '../child/index.ts';
import { removeFolder } from '../files/index.ts';
import { ownFolder } from '../server/index.ts';
import { SandboxClock, steadyClock } from './clock.ts';
import type { SandboxConfig } from './config.ts';
import { beforeCall } from './call/before-call.ts';
import { openControl } from './control/control-slice.ts';
import { requireOwnOriginToChange } from './call/guards.ts';
import { openSandboxDatabase } from './database.ts';
import { openExternalApp } from './external-app/external-app-slice.ts';
import type { FileProcessingOptions } from './files/file-processing.ts';
import { openFiles } from './files/files-slice.ts';
import type { KeyUse } from './identity/api-keys.ts';
import { openIdentity } from './identity/identity-slice.ts';
import { openInference } from './inference/inference-slice.ts';
import { inferenceProblem as onnxruntimeMissing } from './inference/routes.ts';
import { isDiskFullError } from './machine-error.ts';
import { openMarketplace } from './marketplace/marketplace-slice.ts';
import { openApiRoutes } from './openapi/routes.ts';
import { openPages } from './pages/pages-slice.ts';
import { createCallAttribution } from './referee/call-attribution.ts';
import { openReferee } from './referee/referee-slice.ts';
import { createSigner } from './secrets.ts';
import type { Services, Slice } from './slices.ts';
import { openCatalog } from './stac/catalog-slice.ts';
import type { ImportProgress, ImportResult } from './stac/import/import-items.ts';
import { callContext } from './web/call-context.ts';
import { errorBoundary, methodNotAllowed, pathNotFound } from './error-boundary.ts';
import { adaptWire, changesOf } from './web/wire-adapter.ts';

/** Options of `createSandbox`. */
export interface SandboxOptions {
  readonly config: SandboxConfig;
  readonly log: Logger;
  /** Confinement that keeps child processes from everything that is not theirs. */
  readonly confinement: Confinement;
  /** The wire that it speaks, which must be data (`wireProfile`). Default: as the contract assumes it. */
  readonly profile?: WireProfile | undefined;
  /** Epoch milliseconds. Default: the machine's clock without its small steps. */
  readonly machineNow?: () => number;
  /** Free bytes under a folder. Default: what the system says. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
  /** Inspection of uploaded files. Default: `files/inspect`. */
  readonly inspection?: Pick<FileProcessingOptions, 'job' | 'limits'>;
  /** Returns the reason why no model can run, or null if models can. Default: checks for onnxruntime-node. */
  readonly inferenceProblem?: () => string | null;
}

/** A sandbox: the listener of its HTTP server, its API key and its end. */
export interface Sandbox {
  readonly handler: RequestListener;
  /** A key that was made because there was none; null where `SANDBOX_API_KEY` or an earlier start gave one. */
  readonly madeApiKey: string | null;
  /** Permissions of a key, and those that calls with it needed. Null for an unknown key. */
  permissionsOf(apiKey: string): KeyUse | null;
  /** Receives the address at which the sandbox listens. Signed addresses begin with it. */
  listensAt(url: string): void;
  /** Takes a file of items, a raster or a folder of both into the catalog (`--import`). */
  importPath(path: string, progress: ImportProgress): Promise<ImportResult>;
  close(): Promise<void>;
}

const sweepEveryMs = 10 * 60_000;

const notKept: RequestHandler = (_req, res, next) => {
  res.set('Cache-Control', 'no-store');
  next();
};

/** The platform on one machine, wired. It listens nowhere yet: the caller serves `handler`. */
export async function createSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { config, log, confinement, profile = assumedProfile, machineNow = steadyClock(), freeBytes } = options;
  const changes = changesOf(profile);
  const below = (name: string) => join(config.dataDir, name);
  const leaveFolder = ownFolder(config.dataDir);
  const database = openSandboxDatabase(config.dataDir);
  let ownUrl = `http://${config.host}:${config.port}`;
  const services: Services = {
    ...{ config, log, database, confinement, profile, machineNow, freeBytes },
    clock: new SandboxClock(database, machineNow, config.clockStartsAtMs),
    signer: createSigner(database),
    folders: {
      blobDir: below('blobs'),
      overviewDir: below('overviews'),
      resultDir: below('inference'),
      uploadedScenes: below('uploaded-scenes'),
      workDir: below('work'),
    },
    publicUrl: () => config.publicUrl ?? ownUrl,
  };
  await removeFolder(services.folders.workDir);

  const unavailable =
    confinement.kind === 'absent' ? confinement.summary : (options.inferenceProblem ?? onnxruntimeMissing)();
  const identity = openIdentity(services);
  const referee = openReferee(services, identity.stores);
  const marketplace = openMarketplace(services, identity.stores);
  const control = openControl(services, marketplace.stores);
  const catalog = openCatalog(services, identity.stores);
  const files = openFiles(services, identity.stores, catalog.stores, options.inspection ?? {});
  const inference = await openInference(services, files.stores, unavailable);
  const externalApp = openExternalApp(services, marketplace.stores);
  const pages = openPages(services);

  const stores = {
    ...{ ...identity.stores, ...referee.stores, ...marketplace.stores, ...control.stores, ...catalog.stores },
    ...{ ...files.stores, ...inference.stores, ...externalApp.stores },
  };
  const attribute = createCallAttribution({ ...stores, items: stores.catalog.items });
  const opened = [identity, referee, marketplace, control, catalog, files, inference, externalApp, pages];
  const topics = opened.flatMap((slice: Pick<Slice, 'topics'>) => slice.topics ?? []);
  const before = beforeCall({ ...stores, attribute });
  const uninspected = confinement.kind === 'absent' ? confinement.summary : null;
  const platform = { ...stores, topics, unavailable, uninspected, before, afterClockMoved: sweep, reset };
  const slices: Slice<object, typeof platform>[] = opened;
  const lastFirst = slices.toReversed();

  async function sweep(): Promise<void> {
    for (const slice of slices) await slice.sweep?.();
  }

  /** Back to the seeded state. Keys, and the apps and users that were registered, stay. */
  async function reset(): Promise<void> {
    await Promise.all(slices.map(async (slice) => slice.pause?.()));
    try {
      await forgetAll();
    } finally {
      // A job that was woken during the reset must not start on deleted data.
      await Promise.all(slices.map(async (slice) => slice.resume?.()));
    }
  }

  async function forgetAll(): Promise<void> {
    const forget = database.transaction(() => {
      for (const slice of lastFirst) slice.forget?.();
    });
    const removeResults = async () => {
      for (const folder of slices.flatMap(({ results = [] }) => results))
        await rm(folder, { recursive: true, force: true });
    };
    try {
      forget();
    } catch (error) {
      if (!isDiskFullError(error)) throw error;
      // Deleting results frees the space that the database needs to record the deletions.
      await removeResults();
      forget();
    }
    services.clock.reset();
    await removeResults();
    for (const slice of slices) await slice.afterForget?.();
  }

  async function close(): Promise<void> {
    clearInterval(sweeping);
    for (const slice of lastFirst) await slice.close?.();
    database.close();
    leaveFolder();
  }

  const sweeping = setInterval(
    () => void sweep().catch((error: unknown) => log.error({ err: error }, 'sweep failed')),
    sweepEveryMs,
  );
  sweeping.unref();
  try {
    for (const slice of slices) await slice.start?.();
  } catch (error) {
    await close();
    throw error;
  }

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('case sensitive routing', true);
  app.use(callContext);
  // Answers are of their moment and their caller; what may be kept says so itself.
  app.use(notKept);
  app
    .route('/health')
    .get((_req, res) => void res.json({ status: 'ok' }))
    .all(methodNotAllowed('GET'));
  // A wire that is the contract's needs no translation.
  if (Object.keys(changes).some((part) => part !== 'name')) app.use(adaptWire(changes));
  app.use(requireOwnOriginToChange(services.publicUrl));
  app.use('/public/stac', oneSlash);
  app.use(openApiRoutes(services.publicUrl));
  for (const slice of slices) {
    const routes = slice.routes?.(platform);
    if (routes) app.use(routes);
  }
  app.use(pathNotFound);
  app.use(errorBoundary(log));

  return {
    handler: app,
    madeApiKey: identity.madeApiKey,
    permissionsOf: (apiKey) => stores.keys.useOf(apiKey),
    importPath: stores.importFolder,
    listensAt: (url) => (ownUrl = url),
    close,
  };
}

/** Clients that join addresses as text send two slashes, which mean one. */
const oneSlash: RequestHandler = (req, _res, next) => {
  const [path = '', ...query] = req.url.split('?');
  req.url = [path.replaceAll(/\/{2,}/g, '/'), ...query].join('?');
  next();
};
