import type { RequestListener } from 'node:http';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import express, { type RequestHandler } from 'express';
import type { Logger } from 'pino';
import { SandboxClock, steadyClock } from './clock.ts';
import type { SandboxConfig } from './config.ts';
import { Faults } from './control/faults.ts';
import { bundler } from './bundles/make-bundle.ts';
import { secretFree } from './bundles/secret-free.ts';
import { scrubber } from './referee/redaction.ts';
import { beforeCall } from './control/before-call.ts';
import { createCallAttribution } from './referee/call-attribution.ts';
import { RateLimit } from './control/rate-limit.ts';
import { requireAdmin, requireOwnHost, requireOwnOrigin, requireOwnOriginToChange } from './control/guards.ts';
import { controlRoutes } from './control/routes.ts';
import { openSandboxDatabase } from './database.ts';
import { Operations } from './external-app/operations.ts';
import { externalAppRoutes } from './external-app/routes.ts';
import { createDownloadLinks } from './files/download-links.ts';
import { FileProcessing, type FileProcessingOptions } from './files/file-processing.ts';
import { Files } from './files/files.ts';
import { fileRoutes } from './files/routes.ts';
import { ApiKeys, permissions } from './identity/api-keys.ts';
import { IdentityTokens } from './identity/identity-tokens.ts';
import { Users } from './identity/users.ts';
import { InferenceJobs } from './inference/inference-jobs.ts';
import { InferenceRunner } from './inference/inference-runner.ts';
import { loadModels } from './inference/models.ts';
import { inferenceRoutes, whyNoInference as onnxruntimeMissing } from './inference/routes.ts';
import { Apps } from './marketplace/apps.ts';
import { LaunchEvents } from './marketplace/launch-events.ts';
import { Launches } from './marketplace/launches.ts';
import { Trace } from './referee/trace.ts';
import { rulesOf } from './referee/verdict.ts';
import { Verdicts } from './referee/verdicts.ts';
import { openApiRoutes } from './openapi/routes.ts';
import { sandboxPages } from './pages/routes.ts';
import { createSigner, secretCharacters } from './secrets.ts';
import { AssetLinks } from './stac/asset-links.ts';
import { catalogPages } from './stac/catalog-pages.ts';
import { Catalog } from './stac/catalog.ts';
import { itemOfFile } from './stac/file-items.ts';
import { importsCatalogId } from './stac/collections.ts';
import { collectionOfFolder } from './stac/import/import-rasters.ts';
import type { ImportProgress, ImportResult } from './stac/import/import-items.ts';
import { importPath } from './stac/import/import-path.ts';
import { ItemSources } from './stac/item-sources.ts';
import { stacRoutes } from './stac/routes.ts';
import { seedDemo } from './stac/seed.ts';
import { StacObjects } from './stac/stac-objects.ts';
import { isDiskFullError } from './machine-error.ts';
import { assumedProfile, type WireProfile } from '../contract/index.ts';
import { type Confinement } from '../child/index.ts';
import { removeFolder } from '../files/index.ts';
import { ownFolder } from '../server/index.ts';
import { UploadEngine } from './uploads/upload-engine.ts';
import { UploadSessions } from './uploads/upload-sessions.ts';
import { errorBoundary, methodNotAllowed, pathNotFound } from './web/error-boundary.ts';
import { callContext } from './web/call-context.ts';
import { changesOf, adaptWire } from './web/wire-adapter.ts';

export interface SandboxOptions {
  readonly config: SandboxConfig;
  readonly log: Logger;
  /** How children are kept from everything that is not theirs. */
  readonly confinement: Confinement;
  /** The wire that it speaks, which must be data (`wireProfile`). Default: as the contract assumes it. */
  readonly profile?: WireProfile | undefined;
  /** Epoch milliseconds. Default: the machine's clock without its small steps. */
  readonly machineNow?: () => number;
  /** Free bytes under a folder. Default: what the system says. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
  /** How uploaded files are looked at. Default: by what `files/inspect` finds. */
  readonly inspection?: Pick<FileProcessingOptions, 'job' | 'limits'>;
  /** Why no model can be run, null where they can. Default: whether onnxruntime-node is installed. */
  readonly whyNoInference?: () => string | null;
}

export interface Sandbox {
  readonly handler: RequestListener;
  /** A key that was made because there was none; null where `SANDBOX_API_KEY` or an earlier start gave one. */
  readonly madeApiKey: string | null;
  /** Told once it is known where the sandbox listens; signed addresses are built on it. */
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
export async function createSandbox({
  config,
  log,
  confinement,
  profile = assumedProfile,
  machineNow = steadyClock(),
  freeBytes,
  inspection,
  whyNoInference = onnxruntimeMissing,
}: SandboxOptions): Promise<Sandbox> {
  const changes = changesOf(profile);
  const leaveFolder = ownFolder(config.dataDir);
  const database = openSandboxDatabase(config.dataDir);
  const blobDir = join(config.dataDir, 'blobs');
  const overviewDir = join(config.dataDir, 'overviews');
  const workDir = join(config.dataDir, 'work');
  const uploadedScenes = join(config.dataDir, 'uploaded-scenes');
  let ownUrl = `http://${config.host}:${config.port}`;
  const publicUrl = () => config.publicUrl ?? ownUrl;

  const clock = new SandboxClock(database, machineNow);
  const signer = createSigner(database);
  const keys = new ApiKeys(database, () => clock.now());
  const users = new Users(database);
  const apps = new Apps(database);
  const tokens = new IdentityTokens(database, clock, signer, profile.limits);
  const events = new LaunchEvents(database, clock);
  const launches = new Launches(database, clock, tokens, apps, users, events, profile.launchTokenField);
  const operations = new Operations(database, clock, events, profile.limits);
  const files = new Files(database, clock);
  const uploadSessions = new UploadSessions(database);
  const uploads = new UploadEngine({
    sessions: uploadSessions,
    files,
    clock,
    blobDir,
    limits: profile.limits,
    freeBytes,
  });
  const catalog = new Catalog(database, {
    uploadsCollection: (userId) => profile.uploadsCollection(userId),
  });
  const sources = new ItemSources({ dataDir: config.dataDir, blobDir, overviewDir, confinement });
  const processing = new FileProcessing({
    files,
    confinement,
    blobDir,
    overviewDir,
    workDir,
    log,
    publish(file, facts) {
      const uploader = users.find(file.userId);
      if (!uploader) return;
      const now = clock.now(file.launchId);
      const item = itemOfFile(file, facts, uploader, catalog.collections.ensureUploadsOf(uploader, now), now);
      if (item) catalog.items.put(item);
    },
    ...inspection,
  });
  const models = await loadModels(config.dataDir, log);
  const inferenceJobs = new InferenceJobs(database, clock);
  const resultDir = join(config.dataDir, 'inference');
  const inference = new InferenceRunner({
    jobs: inferenceJobs,
    files,
    models,
    blobDir,
    resultDir,
    workDir,
    confinement,
    log,
  });
  const faults = new Faults(database, events);
  const rateLimit = new RateLimit(database, machineNow);
  const ownKey = scrubber(config.apiKey === null ? [] : [config.apiKey]);
  // Those that the sandbox makes are all as long, and so is what it was given: of any other text nobody need ask.
  const lengths = [secretCharacters, config.apiKey?.length];
  const known = secretFree(
    (text) => lengths.includes(text.length) && (keys.find(text) !== null || tokens.identify(text) !== null),
  );
  const redact = <T>(value: T): T => known(ownKey(value) as T);
  const trace = new Trace(database, clock, log, redact);
  const verdicts = new Verdicts(trace, rulesOf(profile.limits));

  if (config.apiKey !== null) keys.admit(config.apiKey);
  const madeApiKey = keys.list().length === 0 ? keys.create(permissions).apiKey : null;
  await uploads.open();
  await removeFolder(workDir);
  // Versions up to 0.2.0 kept an index of the catalog there.
  await removeFolder(join(config.dataDir, 'index'));
  for (const user of users.list()) catalog.collections.ensureUploadsOf(user, clock.now());
  if (config.seed === 'demo' && catalog.items.count() === 0)
    await seedDemo(catalog, { workFolder: join(workDir, 'seed'), confinement });
  files.requeueUnfinished();
  processing.wake();
  inferenceJobs.requeueUnfinished();
  inference.wake();
  const sweep = () =>
    uploads.sweep().then((swept) => void (swept > 0 && log.info({ swept }, 'removed idle upload sessions')));
  await sweep();
  const sweeping = setInterval(
    () => void sweep().catch((error: unknown) => log.error({ err: error }, 'sweep failed')),
    sweepEveryMs,
  );
  sweeping.unref();

  /** Back to the seeded state. Keys, and the apps and users that were registered, stay. */
  async function reset(): Promise<void> {
    await Promise.all([processing.stop(), inference.stop()]);
    try {
      await forgetAll();
    } finally {
      // A job that was woken during the reset must not start on deleted data.
      await Promise.all([processing.restart(), inference.restart()]);
      processing.wake();
      inference.wake();
    }
  }

  async function forgetAll(): Promise<void> {
    const forget = database.transaction(() => {
      catalog.items.removeOfFiles();
      if (existsSync(uploadedScenes)) catalog.items.removeBelow(uploadedScenes);
      trace.clear();
      // It writes an event, which is deleted below.
      faults.clear();
      for (const table of ['inference_jobs', 'files', 'uploads', 'operations', 'tokens', 'launches', 'launch_events'])
        database.exec(`delete from ${table}`);
    });
    try {
      forget();
    } catch (error) {
      if (!isDiskFullError(error)) throw error;
      // Deleting results frees the space that the database needs to record the deletions.
      for (const folder of [overviewDir, resultDir]) await rm(folder, { recursive: true, force: true });
      forget();
    }
    clock.reset();
    rateLimit.clear();
    for (const folder of [overviewDir, resultDir, uploadedScenes]) await rm(folder, { recursive: true, force: true });
    await uploads.open();
  }

  const importFolder = (path: string, progress: ImportProgress) =>
    importPath(catalog, path, { workFolder: join(workDir, 'import'), confinement }, progress, clock.now());

  const bundle = bundler({
    ...{ config, trace, verdicts, events, faults, operations, uploadSessions, files, redact },
    ...{ items: catalog.items, confinement, blobDir, workDir },
  });
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
  app.use(requireOwnOriginToChange(publicUrl));
  app.use(
    '/sandbox',
    requireOwnHost(publicUrl),
    requireOwnOrigin(publicUrl),
    requireAdmin(config.adminKey),
    controlRoutes({
      apps,
      users,
      keys,
      launches,
      tokens,
      operations,
      uploadSessions,
      clock,
      events,
      faults,
      rateLimit,
      files,
      uploads,
      items: catalog.items,
      jobs: inferenceJobs,
      trace,
      verdicts,
      publicUrl,
      afterClockMoved: sweep,
      reset,
      bundle,
    }),
  );
  app.use(
    externalAppRoutes({
      keys,
      tokens,
      launches,
      users,
      operations,
      uploads,
      uploadSessions,
      processing,
      faults,
      rateLimit,
      trace,
    }),
  );
  const whose = createCallAttribution({ keys, launches, operations, files, items: catalog.items });
  const before = beforeCall({ trace, whose, faults, rateLimit });
  const uploaderId = () => users.list()[0]!.id;
  const links = createDownloadLinks(signer, clock, publicUrl);
  const unavailable = whyNoInference();
  const fileApi = { files, uploads, processing, links, blobDir, uploaderId, freeBytes };
  const inferenceApi = { models, jobs: inferenceJobs, runner: inference, files, unavailable };
  app.use(fileRoutes({ ...fileApi, keys, before }));
  app.use(inferenceRoutes({ ...inferenceApi, keys, before }));
  const assets = new AssetLinks(signer, clock, publicUrl);
  const objects = new StacObjects({ catalog, assets, publicUrl, strict: config.stacStrict });
  app.use(stacRoutes({ before, catalog, objects, assets, sources, keys, strict: config.stacStrict }));
  app.use(catalogPages(catalog, sources, publicUrl));
  app.use(openApiRoutes(publicUrl));
  app.use(
    sandboxPages({
      ...{
        apps,
        users,
        launches,
        operations,
        tokens,
        uploadSessions,
        clock,
        events,
        faults,
        trace,
        verdicts,
        redact,
        files,
        catalog,
        sources,
        assets,
        objects,
        models,
        unavailable,
        runner: inference,
      },
      ...{
        keys,
        database,
        signer,
        publicUrl,
        adminKey: config.adminKey,
        mapTiles: config.mapTiles,
        limits: profile.limits,
        jobs: inferenceJobs,
        afterClockMoved: sweep,
        reset,
        fileApi,
        inferenceApi,
      },
      sceneUploads: {
        workFolder: join(workDir, 'scenes'),
        folder: uploadedScenes,
        importPath: importFolder,
        isForeign: (name) =>
          (catalog.collections.find(collectionOfFolder(name))?.catalogId ?? importsCatalogId) !== importsCatalogId,
        freeBytes,
      },
    }),
  );
  app.use(pathNotFound);
  app.use(errorBoundary(log));

  return {
    handler: app,
    madeApiKey,
    importPath: (path, progress) => importFolder(path, progress),
    listensAt: (url) => (ownUrl = url),
    async close() {
      clearInterval(sweeping);
      await Promise.all([processing.close(), inference.stop()]);
      await Promise.all([uploads.close(), sources.close(), catalog.close()]);
      trace.close();
      database.close();
      leaveFolder();
    },
  };
}
