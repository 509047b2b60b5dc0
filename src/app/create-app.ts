import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import express, { type RequestHandler } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';
import { assumedProfile, isPlainOrigin, type WireProfile } from '../contract/index.ts';
import type { Confinement } from '../child/index.ts';
import {
  createPlatformClient,
  type HttpTransport,
  type LaunchCalls,
  type PlatformClient,
  type RetryPolicy,
} from '../platform-client/index.ts';
import { createOwnUploads } from './catalog/own-uploads.ts';
import type { AppConfig } from './config.ts';
import type { AppDefinition } from './definition/app-definition.ts';
import { checkDefinition } from './definition/check-definition.ts';
import { openStores, type AppStores } from './open-stores.ts';
import { JobDesk } from './execution/job-desk.ts';
import { openEngine } from './execution/open-engine.ts';
import type { JobRecords } from './execution/job-records.ts';
import { RemoteExecutor } from './execution/remote-executor.ts';
import { servePages } from './serve-pages.ts';
import { sweep } from './sweep.ts';
import { createTraces } from './monitoring/traces.ts';
import { createMetrics } from './monitoring/metrics.ts';
import { freeBytesOf } from './monitoring/readiness.ts';
import { newestMigration } from './migrations.ts';
import { kitVersion } from '../files/index.ts';
import { monitoringRoutes } from './monitoring/routes.ts';
import { createStreams } from './pages/change-events.ts';
import { createPages } from './pages/pages.ts';
import { createPlatformInput } from './processing/platform-input.ts';
import { createContainers } from './processing/containers.ts';
import { createStepHost } from './processing/step-host.ts';
import { createWorkSpace } from './processing/work-space.ts';
import { RecentMap } from './recent-map.ts';
import type { WorkerPlace } from './runs/placement.ts';
import { createRunEngine } from './runs/run-engine.ts';
import { WorkFolders } from './runs/work-folders.ts';
import { WorkerLease } from './runs/worker-lease.ts';
import { errorBoundary, notFound } from './web/errors.ts';
import { loggedPath } from './web/logged-path.ts';

/** A clock: milliseconds since 1970. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

/** Options of `createApp`. */
export interface AppOptions {
  readonly config: AppConfig;
  /** Describes the app. `createApp` throws `DefinitionError` if the definition is not valid. */
  readonly definition: AppDefinition;
  readonly log: Logger;
  /** Number of log lines that were dropped, for the metrics. Default: 0. */
  readonly droppedLogLines?: () => number;
  /** Keeps child processes from everything that is not theirs. */
  readonly confinement: Confinement;
  /** Stores of a test. The app opens the missing ones in the database of `config`. @internal */
  readonly stores?: Partial<AppStores>;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Transport for calls to the platform. Default: HTTP to `config.platformUrl`. */
  readonly http?: HttpTransport;
  readonly retry?: Partial<RetryPolicy> | undefined;
}

/** An app: its Express application, its worker and its end. */
export interface App {
  readonly handler: RequestListener;
  /** Starts to take runs, unless the role is `web`. Returns how many runs an earlier process left unfinished. */
  work(): Promise<number>;
  /** Leaves every run where it is, for another worker or the next start. Pages are still served. */
  stopWork(): Promise<void>;
  /** Stops work, and closes the database: no request may come any more. */
  close(): Promise<void>;
}

const dayMs = 86_400_000;
/** Free disk space that a worker needs to take runs again after its disk was full. It is twice the reserve of a step. */
const leastToResumeBytes = 32 * 2 ** 20;
/** Maximum number of launches with kept calls, which share a token's renewal. A new launch replaces the least recently used one. */
const maxLaunches = 10_000;
/**
 * Interval between sweeps, in milliseconds. A sweep removes expired sessions, tokens that nobody can use, and data
 * whose storage time is over.
 */
const sweepEveryMs = 3_600_000;

/** An app, wired. It listens nowhere yet: the caller serves `handler`. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, definition, log, clock = Date } = options;
  checkDefinition(definition);
  const now = () => clock.now();
  const opened = await openStores(options.stores ?? {}, config, now, log);
  try {
    return await wireApp(options, opened, now);
  } catch (error) {
    // An open database keeps the process alive.
    await Promise.allSettled([opened.stores.queue.close(), opened.stores.progress.close()]);
    await opened.close();
    throw error;
  }
}

async function wireApp(
  options: AppOptions,
  { stores, jobs, close: closeStores, connections }: Awaited<ReturnType<typeof openStores>>,
  now: () => number,
): Promise<App> {
  const { config, definition, log, confinement } = options;
  const profile = definition.profile ?? assumedProfile;
  const { queue, progress, launches, runs: store } = stores;
  const { isShared } = queue;
  // Another process may have the same pid after a restart, or on another machine of the same name.
  const lease = new WorkerLease(`${hostname()}:${process.pid}:${randomBytes(6).toString('base64url')}`, { isShared });
  const metrics = createMetrics({ role: config.role, version: kitVersion, schema: newestMigration });
  const traces = await createTraces({
    endpoint: config.tracesTo,
    serviceName: config.serviceName,
    attributes: { 'service.version': kitVersion, 'service.instance.id': lease.worker, 'app.role': config.role },
    sampledShare: config.tracedShare,
  });
  const client = createPlatformClient({
    baseUrl: config.platformUrl,
    apiKey: config.platformApiKey.reveal(),
    profile,
    transport: options.http,
    retry: options.retry,
    log: log.child({ part: 'platform-client' }),
    onCall(call) {
      metrics.observeCall(call);
      traces.call(call);
    },
    now,
  });
  const workDir = join(config.dataDir, 'work');
  mkdirSync(workDir, { recursive: true });
  const remote = await openRemoteExecutor(config, jobs, definition, log);
  const { steps, workSpace } = await createSteps(options, { client, metrics, profile, workDir, remote });

  const uploads = createOwnUploads(profile, config.separateUploads);
  const engine = createRunEngine({
    store,
    queue,
    progress,
    lease,
    callsOf: callsByLaunch(client, launches, lease),
    mayUse: async (launchId, input) => uploads.requireOwn(await launches.find(launchId), input),
    ownerOf: async (launchId) => (await launches.find(launchId))?.user.id ?? launchId,
    steps,
    settings: { ...config, limits: profile.limits, refusedFields: profile.refusedFields },
    folders: new WorkFolders(workDir, store),
    place: placeOf(config),
    isElastic: remote !== null,
    now,
    log,
    isMachineWell: async () =>
      (await freeBytesOf(workDir)) >= leastToResumeBytes && (steps.canStartChildren() || (await canStartProcess())),
    onOutdated: () => {
      aside = 'a newer release has changed the database';
      log.error({}, 'a newer release has changed the database: this process takes no more runs');
    },
    onStage: (state, seconds) => metrics.observeStage(state, seconds),
    onFailed: (code) => metrics.observeFailure(code),
    onEnded: (state) => metrics.observeEnd(state),
    onPassedOn: () => metrics.observePassedOn(),
    onLeaseLost: () => metrics.observeLeaseLost(),
    onUsage: (usage) => metrics.observeUsage(usage),
    onPollInterval: (seconds) => metrics.observePollInterval(seconds),
    traceStage: (run, work) => traces.stage(run, work),
    onSessionOver: (launchId) => launches.eraseTokens([launchId]),
  });

  const sweeping = await startSweeping(stores, { config, limits: profile.limits, now, log });

  let isWorking = config.role === 'web';
  let aside: string | null = null;
  const streams = createStreams();
  const pages = createPages({ mapTiles: config.mapTiles, app: definition });
  const app = bareApplication(config, log);
  app.use(
    monitoringRoutes({
      metrics,
      sources: {
        countRuns: () => store.countByState(),
        lookAtFleet: () => lookAtFleet(store, isShared),
        stepLoad: () => steps.load(),
        connections,
        freeBytes: () => freeBytesOf(config.dataDir),
        workBytes: () => workSpace.used(),
        openPages: () => streams.open,
        droppedLogLines: options.droppedLogLines ?? (() => 0),
        nowMs: now,
      },
      readiness: {
        askDatabase: () => store.check(),
        platformUrl: config.platformUrl,
        dataDir: config.dataDir,
        isWorking: () => isWorking,
        standsAside: () => aside,
        canStartChildren: () => steps.canStartChildren(),
        confinement: confinement.summary,
      },
      publicMetrics: config.publicMetrics,
    }),
  );
  if (remote) app.use(remote.desk.routes);
  if (config.role !== 'worker')
    servePages(app, {
      ...{ config, definition, profile, client, steps, engine, stores, pages, streams, uploads, traces, now },
    });
  app.use(notFound);
  app.use(
    errorBoundary(
      (view) => pages.render('error', { ...view, marketplace: config.platformPublicUrl }),
      ({ status, code }) => metrics.observeRefusal(status, code),
    ),
  );

  let stopped: Promise<void> | null = null;
  const stopWork = () => {
    aside ??= 'the process is about to end';
    // A web process has no runs. It responds until load balancers have noticed that it is not ready.
    const drained = config.role === 'web' ? sleep(config.drainMs) : Promise.resolve();
    return (stopped ??= drained.then(() => engine.stop()));
  };
  return {
    handler: app,
    async work() {
      const unfinished = config.role === 'web' ? 0 : await engine.work();
      isWorking = true;
      return unfinished;
    },
    stopWork,
    async close() {
      clearInterval(sweeping);
      await stopWork();
      client.close();
      await Promise.all([remote?.executor?.close(), traces.close()]);
      await closeStores();
    },
  };
}

/** The steps of an app, and the room for their work. */
async function createSteps(
  { config, definition, log, confinement }: AppOptions,
  {
    client,
    metrics,
    profile,
    workDir,
    remote,
  }: {
    readonly client: PlatformClient;
    readonly metrics: ReturnType<typeof createMetrics>;
    readonly profile: WireProfile;
    readonly workDir: string;
    readonly remote: RemoteSteps | null;
  },
) {
  const stepLimits = { timeoutMs: config.stepTimeoutMs, memoryBytes: config.stepMemoryBytes };
  const containers = config.containerEngine === null ? null : createContainers(config.containerEngine, config.dataDir);
  await containers?.sweep().then(
    (removed) => removed > 0 && log.warn({ removed }, 'removed containers that a killed process had left'),
    (error: unknown) => log.warn({ err: error }, 'the container engine does not answer'),
  );
  const workSpace = createWorkSpace({
    folder: workDir,
    quotaBytes: config.workDiskBytes,
    runBytes: config.stepDiskBytes,
  });
  const steps = createStepHost({
    definition,
    inputDir: config.inputDir,
    platformInput: createPlatformInput({
      client,
      allowedOrigins: config.assetOrigins,
      reachable: (href) => reachableFrom(config, href),
      maxBytes: config.inputMaxBytes,
      confinement,
      limits: stepLimits,
    }),
    ...(containers && { containers }),
    ...(remote?.executor && { executor: remote.executor }),
    confinement,
    concurrency: config.stepConcurrency,
    memoryBytes: remote ? undefined : (config.workerMemoryBytes ?? undefined),
    tilePixels: config.tilePixels ?? undefined,
    packsOutputs: profile.severalOutputs === 'zip',
    limits: { ...stepLimits, diskBytes: config.stepDiskBytes },
    workSpace,
    onUsage: ({ memoryBytes }) => metrics.observeStepMemory(memoryBytes),
    onDefect: (error, what) => log.error({ err: error }, what),
    inspectPort: config.inspectPort ?? undefined,
  });
  return { steps, workSpace };
}

/** An Express application that logs requests and sets headers. */
function bareApplication(config: AppConfig, log: Logger): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('trust proxy', config.trustProxy ? 1 : false);
  app.set('case sensitive routing', true);
  app.use(requestLog(log));
  app.use(securityHeaders(config));
  // Pages and answers are of one user's launch; assets say that they may be kept.
  app.use(notKept);
  return app;
}

/** Calls of each launch, so that its runs share one token and one renewal. */
function callsByLaunch(
  client: PlatformClient,
  launches: AppStores['launches'],
  lease: WorkerLease,
): (launchId: string) => LaunchCalls {
  const calls = new RecentMap<string, LaunchCalls>(maxLaunches);
  return (launchId) => {
    const known = calls.get(launchId);
    if (known) return known;
    const made = client.launch(launches.tokens(launchId), { mayCall: (signal) => lease.held(signal) });
    calls.set(launchId, made);
    return made;
  };
}

const placeOf = (config: AppConfig): WorkerPlace => ({
  labels: config.workerLabels,
  memoryBytes: config.workerMemoryBytes,
  cores: config.workerCores,
  diskBytes: config.stepDiskBytes,
});

interface RemoteSteps {
  /** Null in a process that takes no runs. */
  readonly executor: RemoteExecutor | null;
  readonly desk: JobDesk;
}

/** The executor that gives steps to an engine outside the app, and the desk that serves its jobs. Null if steps run on this machine. */
async function openRemoteExecutor(
  { stepExecutor, role, jobsUrls: [ownUrl, ...others] }: AppConfig,
  records: JobRecords | null,
  { module }: Pick<AppDefinition, 'module'>,
  log: Logger,
): Promise<RemoteSteps | null> {
  if (stepExecutor === null || ownUrl === undefined || records === null) return null;
  const desk = new JobDesk(records, ownUrl);
  // A web process only sends jobs to their owners.
  if (role === 'web') return { desk, executor: null };
  const engine = await openEngine(stepExecutor, fileURLToPath(module));
  log.info(
    { engine: engine.title, jobsUrls: [ownUrl, ...others] },
    'an engine does the steps, and its jobs call these addresses',
  );
  return { desk, executor: new RemoteExecutor({ engine, desk, records, addresses: [ownUrl, ...others], log }) };
}

/** Sweeps the stores now, and from then on at intervals. */
async function startSweeping(
  stores: AppStores,
  {
    config,
    limits,
    now,
    log,
  }: Pick<AppOptions, 'config' | 'log'> & { readonly limits: WireProfile['limits']; readonly now: () => number },
): Promise<NodeJS.Timeout> {
  const sweepOrTell = async () => {
    try {
      const forgotten = await sweep(stores, { nowMs: now(), keepMs: config.keepDays * dayMs, limits });
      if (forgotten.runs + forgotten.launches > 0) log.info(forgotten, 'removed what was older than KEEP_DAYS');
    } catch (error) {
      log.error({ err: error }, 'sweep failed');
    }
  };
  await sweepOrTell();
  const sweeping = setInterval(() => void sweepOrTell(), sweepEveryMs);
  sweeping.unref();
  return sweeping;
}

/** The living workers, and the age of the oldest run of each state. */
async function lookAtFleet(store: AppStores['runs'], isShared: boolean) {
  const workers = isShared ? await store.countWorkers() : { alive: 1, resting: 0 };
  return { workers, oldest: await store.oldestByState() };
}

/** True if this machine can start a process now. */
function canStartProcess(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  spawn('true', { stdio: 'ignore' })
    .once('error', () => resolve(false))
    .once('exit', () => resolve(true));
  return promise;
}

const notKept: RequestHandler = (_req, res, next) => {
  res.set('Cache-Control', 'no-store');
  next();
};

/** Logs each request by method and path. Never a query: a launch's holds the token. */
function requestLog(log: Logger): RequestHandler {
  return pinoHttp({
    logger: log,
    genReqId: (_req, res) => {
      const requestId = randomUUID();
      res.setHeader('X-Request-Id', requestId);
      return requestId;
    },
    // The error boundary logs answers of 500 and above, with their error.
    customLogLevel: (_req, _res, error) => (error ? 'error' : 'debug'),
    serializers: {
      req: (req: { id: unknown; method: string; url: string }) => ({
        id: req.id,
        method: req.method,
        path: loggedPath(req.url),
      }),
      res: (res: { statusCode: number }) => ({ status: res.statusCode }),
    },
  });
}

/** The address by which this process reaches data of the platform, which links it by the address that browsers have. A signature is of the path and the query. */
function reachableFrom(
  { platformUrl, platformPublicUrl }: Pick<AppConfig, 'platformUrl' | 'platformPublicUrl'>,
  href: string,
): string {
  const isPublic = platformUrl !== platformPublicUrl && href.startsWith(`${platformPublicUrl}/`);
  return isPublic ? platformUrl + href.slice(platformPublicUrl.length) : href;
}

/** Limits the sources that pages may load from: the app itself, and the origins of the platform's pictures. */
function securityHeaders({
  embeddedIn,
  assetOrigins,
  mapTiles,
}: Pick<AppConfig, 'embeddedIn' | 'assetOrigins' | 'mapTiles'>): RequestHandler {
  // A policy has no words for an IPv6 address, and would read more into what is no plain name.
  const pictures = [
    ...assetOrigins,
    ...(mapTiles === null ? [] : [new URL(mapTiles.replace(/[{}]/g, '')).origin]),
  ].filter(isPlainOrigin);
  return helmet({
    // If the app allows a frame, `frame-ancestors` names its origin. This header cannot name an origin.
    xFrameOptions: embeddedIn === null ? { action: 'sameorigin' } : false,
    referrerPolicy: { policy: 'no-referrer' },
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        imgSrc: ["'self'", 'data:', 'blob:', ...pictures],
        connectSrc: ["'self'", ...pictures],
        baseUri: ["'none'"],
        objectSrc: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'self'", ...(embeddedIn === null ? [] : [embeddedIn])],
      },
    },
  });
}
