import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { assumedLimits, keyReadsAllUploads, KitError, type WireLimits } from '../contract/index.ts';
import { serverVariables, shownSetting, tlsSettings, type TlsFiles } from '../server/index.ts';
import { confinementSettings, confinementVariables, type ConfinementSettings } from '../child/index.ts';
import { codeOf } from '../files/index.ts';
import { isLabel } from '../steps/step.ts';

/** A setting that stops the start: names the variable, the value (never a secret's) and the rule. */
export class ConfigError extends KitError {
  constructor(message: string) {
    super('bad_configuration', message);
  }
}

/** A value that prints as `[redacted]` wherever it lands. */
export class Secret {
  readonly #value: string;
  constructor(value: string) {
    this.#value = value;
  }
  reveal(): string {
    return this.#value;
  }
  toString(): string {
    return '[redacted]';
  }
  toJSON(): string {
    return '[redacted]';
  }
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[redacted]';
  }
}

/** The work of a process: `web` serves users, `worker` takes runs further, `all` both. */
export const roles = ['all', 'web', 'worker'] as const;
/** The work of a process: pages (`web`), runs (`worker`), or both (`all`). */
export type Role = (typeof roles)[number];

/** Settings of an app, read from the environment by `readAppConfig`. Times are in milliseconds, sizes in bytes. */
export interface AppConfig {
  /** `--role`, default all. `web` and `worker` need PostgreSQL. */
  readonly role: Role;
  /** `DATABASE_URL` or `DATABASE_URL_FILE`, default SQLite in the data folder: a PostgreSQL server that any number of processes share. */
  readonly databaseUrl: Secret | null;
  /** `HOST`, default 127.0.0.1. */
  readonly host: string;
  /** `PORT`, default 3000; of a worker any free one. */
  readonly port: number;
  /** `TLS_CERT` and `TLS_KEY`, default none: files of a certificate and its key, to speak HTTPS. */
  readonly tls: TlsFiles | null;
  /** `PLATFORM_URL`: the spec's {base_url}. */
  readonly platformUrl: string;
  /** `PLATFORM_PUBLIC_URL`, default `PLATFORM_URL`: the address that browsers have for the platform. Links of pages lead there, and data that the platform links there is fetched from `PLATFORM_URL`. */
  readonly platformPublicUrl: string;
  /** `PLATFORM_API_KEY` or `PLATFORM_API_KEY_FILE`. */
  readonly platformApiKey: Secret;
  /** `APP_SECRET` or `APP_SECRET_FILE`, several separated by commas or line ends: the first encrypts identity tokens and signs session cookies, all of them decrypt and verify. */
  readonly secrets: readonly [Secret, ...Secret[]];
  /** `DATA_DIR`, default `data/app`: database and work folders. */
  readonly dataDir: string;
  /** `INPUT_DIR`, default `<DATA_DIR>/inputs`: the only folder local inputs are read from. */
  readonly inputDir: string;
  /** `ASSET_ORIGINS`, default none: further origins, separated by commas, that the data of catalog items may be fetched from; the platform's own always is. */
  readonly assetOrigins: readonly string[];
  /** `INPUT_MAX_BYTES`, default 16 GiB: most bytes of a run's items together, packed and unpacked. */
  readonly inputMaxBytes: number;
  /** `POLL_INTERVAL_MS`, default 3,000. Spec 4.8, rule 2: 2,000 to 5,000. */
  readonly pollIntervalMs: number;
  /** `UPLOAD_PART_BYTES`, default 16 MiB. */
  readonly uploadPartBytes: number;
  /** `STEP_TIMEOUT_MS`, default 1 hour. */
  readonly stepTimeoutMs: number;
  /** `STEP_MEMORY_BYTES`, default 2 GiB. */
  readonly stepMemoryBytes: number;
  /** `WORKER_LABELS`, default none: kinds of machine that this worker is, separated by commas, such as `gpu`. */
  readonly workerLabels: readonly string[];
  /** `WORKER_MEMORY_BYTES`, default the memory of the machine, but at least `STEP_MEMORY_BYTES`: for all steps that run here at the same time. Null, the default with `STEP_EXECUTOR`: as much as the engine has. */
  readonly workerMemoryBytes: number | null;
  /** `WORKER_CORES`, default those of the machine, with `STEP_EXECUTOR` any number: the most that a step may require. */
  readonly workerCores: number | null;
  /** `TILE_PIXELS`, default none: pixels of a tile. A run with more than four times as many is cut into tiles, if its step allows that. Null: no run is cut. */
  readonly tilePixels: number | null;
  /** `STEP_DISK_BYTES`, default 64 GiB. */
  readonly stepDiskBytes: number;
  /** `WORK_DISK_BYTES`, default 256 GiB: all work folders together. */
  readonly workDiskBytes: number;
  /** `CONTAINER_ENGINE`, default none: the program, such as `docker` or `podman`, that runs the images of steps. */
  readonly containerEngine: string | null;
  /** `STEP_EXECUTOR`, default `local`: runs steps on this machine. Otherwise the file with the commands of an engine, such as `deploy/executors/slurm.json`. Null: local. */
  readonly stepExecutor: string | null;
  /** `JOBS_URL`, needed with such an engine: address at which its jobs reach this process; after a comma, addresses of further processes of the app. */
  readonly jobsUrls: readonly string[];
  /** `STEP_CONCURRENCY`, default: cores. */
  readonly stepConcurrency: number;
  /** `STEP_QUEUE`, default 1,000: while this many runs are approved and not yet processed, the app accepts no new one. */
  readonly stepQueue: number;
  /** `RUNS_PER_USER`, default 100: while a user has this many runs that have not ended, the app accepts no new one from that user. */
  readonly runsPerUser: number;
  /** `DATABASE_WAIT_MS`, default 1 min: how long the start waits for a PostgreSQL that does not answer yet. */
  readonly databaseWaitMs: number;
  /** `DATABASE_CONNECTIONS`, default 10: most connections of this process to PostgreSQL, besides the 4 of its queue. */
  readonly databaseConnections: number;
  /** `DRAIN_SECONDS`, default 0: time after SIGTERM in which steps and uploads can finish, and in which a web process still responds while `/ready` returns 503. */
  readonly drainMs: number;
  /** `PLATFORM_PATIENCE_MS`, default 15 min: how long a platform that does not answer is tried again before a run fails. */
  readonly platformPatienceMs: number;
  /** `KEEP_DAYS`, default 30: how long runs that have ended are kept, and launches with their users' details. */
  readonly keepDays: number;
  /** `TRUST_PROXY`, default false: set to true behind one TLS-ending proxy. */
  readonly trustProxy: boolean;
  /** `SEPARATE_UPLOADS`, default true: the app refuses the uploads of another user. false: the platform separates its users itself. */
  readonly separateUploads: boolean;
  /** `EMBEDDED_IN`, default none: origin of the platform whose pages may show the app in a frame. */
  readonly embeddedIn: string | null;
  /** `LAUNCHES_PER_MINUTE`, default 120: most launches from one address. */
  readonly launchesPerMinute: number;
  /** `SHOW_DEFECTS`, default false: a run's page shows the stack of a step's mistake. For those who write steps. */
  readonly showDefects: boolean;
  /** `STEP_INSPECT`, default none: port of this machine's loopback at which a step waits for a debugger. Only with `STEP_CONFINEMENT=none`. */
  readonly inspectPort: number | null;
  /** `ADMIN_KEY`, default none: password of the operators' pages at `/ops`. Without it the app has no such pages. */
  readonly adminKey: Secret | null;
  /** `METRICS_PUBLIC`, default false: `/metrics` answers on loopback only. */
  readonly publicMetrics: boolean;
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`, default none: base address of an OpenTelemetry collector, which gets traces. */
  readonly tracesTo: string | null;
  /** `OTEL_SERVICE_NAME`, default `marketplace-app`. */
  readonly serviceName: string;
  /** `OTEL_TRACES_SAMPLER` (`always_on`, `always_off`, `traceidratio`, each also with `parentbased_`) and `OTEL_TRACES_SAMPLER_ARG`, default 1: share of launches whose traces are sent. */
  readonly tracedShare: number;
  /** `MAP_TILES`, default none: address of map tiles with `{z}`, `{x}` and `{y}`, drawn over the coarse land that is always there. */
  readonly mapTiles: string | null;
  /** `STEP_CONFINEMENT` and `CONFINEMENT_READS`: how child processes, which open foreign files, are kept from everything else. */
  readonly confinement: ConfinementSettings;
  /** `LOG_LEVEL`, default info. */
  readonly logLevel: string;
}

const integer = (minimum: number, maximum: number, rule = `must be an integer from ${minimum} to ${maximum}`) =>
  z
    .string()
    .regex(/^\d{1,15}$/, rule)
    .transform(Number)
    .refine((n) => n >= minimum && n <= maximum, rule);

const listed = (value: string): string[] =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

const isOrigin = (value: string) =>
  URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && new URL(value).origin === value;

const httpUrl = z
  .string('is required: the address of the platform, for a sandbox on this machine http://127.0.0.1:4010')
  .refine((value) => {
    const url = URL.canParse(value) ? new URL(value) : null;
    return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash;
  }, 'must be an http or https address without credentials, query or fragment')
  .transform((value) => value.replace(/\/+$/, ''));

const environment = ({ pollIntervalMs, chunkBytes }: WireLimits) =>
  z.object({
    ...serverVariables,
    PORT: integer(0, 65_535).optional(),
    PLATFORM_URL: httpUrl,
    PLATFORM_PUBLIC_URL: httpUrl.optional(),
    DATA_DIR: z.string().default('data/app'),
    INPUT_DIR: z.string().optional(),
    ASSET_ORIGINS: z
      .string()
      .transform(listed)
      .refine(
        (origins) => origins.every(isOrigin),
        'must be origins such as https://data.platform.example, separated by commas, without paths',
      )
      .default([]),
    INPUT_MAX_BYTES: integer(1, 2 ** 48).default(16 * 1024 ** 3),
    POLL_INTERVAL_MS: integer(
      pollIntervalMs.min,
      pollIntervalMs.max,
      `must be ${pollIntervalMs.min} to ${pollIntervalMs.max} (service interface 4.8, rule 2)`,
    ).default(Math.min(Math.max(3_000, pollIntervalMs.min), pollIntervalMs.max)),
    UPLOAD_PART_BYTES: integer(1, chunkBytes).default(Math.min(16 * 1024 * 1024, chunkBytes)),
    STEP_TIMEOUT_MS: integer(1, 7 * 24 * 3_600_000).default(3_600_000),
    STEP_MEMORY_BYTES: integer(1, 2 ** 45).default(2 * 1024 ** 3),
    WORKER_LABELS: z
      .string()
      .transform(listed)
      .refine(
        (labels) => labels.every(isLabel),
        'must be words of at most 40 letters a-z, digits and -, separated by commas, such as gpu',
      )
      .default([]),
    WORKER_MEMORY_BYTES: integer(1, 2 ** 50).optional(),
    WORKER_CORES: integer(1, 1_000_000).optional(),
    TILE_PIXELS: integer(65_536, 2 ** 40).optional(),
    STEP_DISK_BYTES: integer(1, 2 ** 48).default(64 * 1024 ** 3),
    WORK_DISK_BYTES: integer(1, 2 ** 50).default(256 * 1024 ** 3),
    CONTAINER_ENGINE: z.string().optional(),
    STEP_EXECUTOR: z.string().default('local'),
    JOBS_URL: z
      .string()
      .transform(listed)
      .refine(
        (addresses) => addresses.length > 0 && addresses.length <= 10 && addresses.every(isOrigin),
        'must be origins such as http://worker-1:3000, separated by commas, without paths',
      )
      .optional(),
    STEP_CONCURRENCY: integer(1, 10_000).default(availableParallelism()),
    STEP_QUEUE: integer(1, 1_000_000).default(1_000),
    RUNS_PER_USER: integer(1, 1_000_000).default(100),
    KEEP_DAYS: integer(1, 36_500).default(30),
    DATABASE_WAIT_MS: integer(0, 24 * 3_600_000).default(60_000),
    DATABASE_CONNECTIONS: integer(2, 1_000).default(10),
    DRAIN_SECONDS: integer(0, 7 * 86_400).default(0),
    PLATFORM_PATIENCE_MS: integer(0, 24 * 3_600_000).default(15 * 60_000),
    TRUST_PROXY: z.enum(['true', 'false'], 'must be true or false').default('false'),
    SEPARATE_UPLOADS: z.enum(['true', 'false'], 'must be true or false').default(keyReadsAllUploads ? 'true' : 'false'),
    EMBEDDED_IN: z
      .string()
      .refine(isOrigin, 'must be an origin such as https://platform.example, without a path')
      .optional(),
    LAUNCHES_PER_MINUTE: integer(1, 1_000_000).default(120),
    METRICS_PUBLIC: z.enum(['true', 'false'], 'must be true or false').default('false'),
    OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
    OTEL_TRACES_SAMPLER: z.enum(samplers, `must be one of ${samplers.join(', ')}`).default('parentbased_always_on'),
    OTEL_TRACES_SAMPLER_ARG: z.coerce.number('must be a number from 0 to 1').min(0).max(1).default(1),
    OTEL_SERVICE_NAME: z.string().max(200).default('marketplace-app'),
    SHOW_DEFECTS: z.enum(['true', 'false'], 'must be true or false').default('false'),
    STEP_INSPECT: integer(1, 65_535).optional(),
    ...confinementVariables,
  });

const noKey =
  'PLATFORM_API_KEY (or PLATFORM_API_KEY_FILE) is required: the API key that the platform issued to this app';

/** Samplers of OpenTelemetry's environment variables. A launch has no parent, so the two kinds are one. */
const samplers = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const;

function sampledShare(sampler: (typeof samplers)[number], argument: number): number {
  if (sampler.endsWith('traceidratio')) return argument;
  return sampler.endsWith('always_off') ? 0 : 1;
}

/**
 * Reads the app's settings once. Throws `ConfigError`. If `APP_SECRET` is not set, makes one in the
 * data folder and says so through `warn`.
 */
export function readAppConfig(
  env: NodeJS.ProcessEnv,
  warn: (message: string) => void,
  options: { role?: string | undefined; limits?: WireLimits | undefined } = {},
): AppConfig {
  const read = environment(options.limits ?? assumedLimits).safeParse(withoutEmpty(env));
  const platformApiKey = readSecret(env, 'PLATFORM_API_KEY');
  const hasKey = platformApiKey !== null && platformApiKey.reveal() !== '';
  if (!read.success) {
    const problems = read.error.issues.map((issue) => {
      const name = String(issue.path[0]);
      const value = env[name];
      return value ? `${name}=${shownSetting(value)} ${issue.message}` : `${name} ${issue.message}`;
    });
    throw new ConfigError([...problems, ...(hasKey ? [] : [noKey])].join('\n'));
  }
  const settings = read.data;
  if (!hasKey) throw new ConfigError(noKey);
  if (!/^[\x21-\x7e]+$/.test(platformApiKey.reveal()))
    throw new ConfigError(
      'PLATFORM_API_KEY must be one word of letters, digits and signs that a header can carry: no spaces, no line ends',
    );
  if (settings.STEP_INSPECT !== undefined && settings.STEP_CONFINEMENT !== 'none')
    throw new ConfigError(
      `STEP_INSPECT=${settings.STEP_INSPECT} needs STEP_CONFINEMENT=none: a confined step has no network for a debugger`,
    );
  const isLocal = settings.STEP_EXECUTOR === 'local';
  if (!isLocal && !settings.JOBS_URL)
    throw new ConfigError(
      `STEP_EXECUTOR=${settings.STEP_EXECUTOR} needs JOBS_URL: the address at which jobs of that engine reach this process`,
    );
  const role = readRole(options.role ?? 'all');
  const databaseUrl = readDatabaseUrl(env);
  if (role !== 'all' && databaseUrl === null)
    throw new ConfigError(
      `--role ${role} needs DATABASE_URL=postgres://...: processes of different roles share a PostgreSQL database`,
    );
  if (databaseUrl !== null && !env['APP_SECRET'] && !env['APP_SECRET_FILE'])
    throw new ConfigError(
      'APP_SECRET (or APP_SECRET_FILE) is required with DATABASE_URL: every process that shares the database needs the same one',
    );
  const dataDir = resolve(settings.DATA_DIR);
  const platformPublicUrl = settings.PLATFORM_PUBLIC_URL ?? settings.PLATFORM_URL;
  return Object.freeze({
    host: settings.HOST,
    role,
    databaseUrl,
    port: settings.PORT ?? (role === 'worker' ? 0 : 3000),
    tls: tlsSettings(settings),
    platformUrl: settings.PLATFORM_URL,
    platformPublicUrl,
    platformApiKey,
    secrets: appSecrets(env, dataDir, warn),
    dataDir,
    inputDir: resolve(settings.INPUT_DIR ?? join(dataDir, 'inputs')),
    assetOrigins: [
      ...new Set([...ownOrigins(settings.PLATFORM_URL), ...ownOrigins(platformPublicUrl), ...settings.ASSET_ORIGINS]),
    ],
    inputMaxBytes: settings.INPUT_MAX_BYTES,
    pollIntervalMs: settings.POLL_INTERVAL_MS,
    uploadPartBytes: settings.UPLOAD_PART_BYTES,
    stepTimeoutMs: settings.STEP_TIMEOUT_MS,
    stepMemoryBytes: settings.STEP_MEMORY_BYTES,
    workerLabels: settings.WORKER_LABELS,
    workerMemoryBytes:
      settings.WORKER_MEMORY_BYTES ?? (isLocal ? Math.max(settings.STEP_MEMORY_BYTES, machineMemory()) : null),
    workerCores: settings.WORKER_CORES ?? (isLocal ? availableParallelism() : null),
    tilePixels: settings.TILE_PIXELS ?? null,
    stepDiskBytes: settings.STEP_DISK_BYTES,
    workDiskBytes: settings.WORK_DISK_BYTES,
    containerEngine: settings.CONTAINER_ENGINE ?? null,
    stepExecutor: isLocal ? null : resolve(settings.STEP_EXECUTOR),
    jobsUrls: settings.JOBS_URL ?? [],
    // A debugger attaches to one step at a time.
    stepConcurrency: settings.STEP_INSPECT === undefined ? settings.STEP_CONCURRENCY : 1,
    stepQueue: settings.STEP_QUEUE,
    runsPerUser: settings.RUNS_PER_USER,
    databaseWaitMs: settings.DATABASE_WAIT_MS,
    databaseConnections: settings.DATABASE_CONNECTIONS,
    drainMs: settings.DRAIN_SECONDS * 1_000,
    platformPatienceMs: settings.PLATFORM_PATIENCE_MS,
    keepDays: settings.KEEP_DAYS,
    trustProxy: settings.TRUST_PROXY === 'true',
    separateUploads: settings.SEPARATE_UPLOADS === 'true',
    embeddedIn: settings.EMBEDDED_IN ?? null,
    launchesPerMinute: settings.LAUNCHES_PER_MINUTE,
    adminKey: readAdminKey(env),
    publicMetrics: settings.METRICS_PUBLIC === 'true',
    showDefects: settings.SHOW_DEFECTS === 'true',
    inspectPort: settings.STEP_INSPECT ?? null,
    tracesTo: settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    serviceName: settings.OTEL_SERVICE_NAME,
    tracedShare: sampledShare(settings.OTEL_TRACES_SAMPLER, settings.OTEL_TRACES_SAMPLER_ARG),
    mapTiles: settings.MAP_TILES ?? null,
    confinement: confinementSettings(env, settings),
    logLevel: settings.LOG_LEVEL,
  });
}

/** Bytes of memory that this process can use: those of its container, or else of the machine. */
const machineMemory = (): number => Math.min(totalmem(), process.constrainedMemory() || Infinity);

function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

function readSecret(env: NodeJS.ProcessEnv, name: string): Secret | null {
  const file = env[`${name}_FILE`];
  if (env[name]) return new Secret(env[name]);
  if (!file) return null;
  try {
    return new Secret(readFileSync(file, 'utf8').trim());
  } catch (error) {
    throw new ConfigError(`${name}_FILE=${file} cannot be read: ${codeOf(error) ?? 'unknown error'}`);
  }
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]'];

/** On loopback a platform goes by several names, and may sign its links with another than it is asked by. */
function ownOrigins(platformUrl: string): string[] {
  const url = new URL(platformUrl);
  if (!loopbackNames.includes(url.hostname)) return [url.origin];
  return loopbackNames.map((name) => `${url.protocol}//${name}${url.port ? `:${url.port}` : ''}`);
}

function readRole(value: string): Role {
  const role = roles.find((known) => known === value);
  if (!role) throw new ConfigError(`--role ${value} must be one of ${roles.join(', ')}`);
  return role;
}

/** The value is not shown: it holds a password. */
function readDatabaseUrl(env: NodeJS.ProcessEnv): Secret | null {
  const given = readSecret(env, 'DATABASE_URL');
  if (given && (!URL.canParse(given.reveal()) || !/^postgres(ql)?:$/.test(new URL(given.reveal()).protocol))) {
    throw new ConfigError(
      'DATABASE_URL must be an address such as postgres://user:password@host:5432/database; leave it out for SQLite',
    );
  }
  return given;
}

/** Reads only the settings of the database. Throws `ConfigError`. */
export function readDatabaseSettings(env: NodeJS.ProcessEnv): { dataDir: string; databaseUrl: string | null } {
  return {
    dataDir: resolve(env['DATA_DIR'] || 'data/app'),
    databaseUrl: readDatabaseUrl(env)?.reveal() ?? null,
  };
}

const minSecretLength = 32;
const isShort = (secret: string) => secret.length < minSecretLength;

function readAdminKey(env: NodeJS.ProcessEnv): Secret | null {
  const key = readSecret(env, 'ADMIN_KEY');
  if (key && isShort(key.reveal()))
    throw new ConfigError(
      `ADMIN_KEY must have at least ${minSecretLength} characters: make one with openssl rand -base64 32`,
    );
  return key;
}

/** Error codes of file systems without hard links. */
const withoutLinks: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** Creates a private file atomically. Returns false if the file exists. */
function makeOnce(path: string, text: string): boolean {
  if (existsSync(path)) return false;
  const whole = `${path}.${randomBytes(6).toString('base64url')}`;
  try {
    writeFileSync(whole, text, { mode: 0o600 });
    linkSync(whole, path);
    return true;
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (code === 'EEXIST') return false;
    if (!withoutLinks.has(code)) throw error;
    if (existsSync(path)) return false;
    renameSync(whole, path);
    return true;
  } finally {
    rmSync(whole, { force: true });
  }
}

function appSecrets(env: NodeJS.ProcessEnv, dataDir: string, warn: (message: string) => void): [Secret, ...Secret[]] {
  const given = readSecret(env, 'APP_SECRET');
  if (given) {
    const [first, ...older] = given
      .reveal()
      .split(/[,\r\n]+/)
      .map((part) => part.trim())
      .filter((part) => part !== '');
    if (first === undefined || isShort(first) || older.some(isShort))
      throw new ConfigError(
        `APP_SECRET must be at least ${minSecretLength} characters; of several, separated by commas or line ends, each`,
      );
    return [new Secret(first), ...older.map((name) => new Secret(name))];
  }
  const path = join(dataDir, 'app-secret');
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  if (makeOnce(path, randomBytes(32).toString('base64url')))
    warn(`APP_SECRET is not set: made one in ${path}. Set APP_SECRET or APP_SECRET_FILE in production.`);
  const secret = readFileSync(path, 'utf8').trim();
  if (isShort(secret))
    throw new ConfigError(
      `${path} holds less than ${minSecretLength} characters, and so no secret: remove it, and the app makes a new one (sessions and launches of before end), or set APP_SECRET`,
    );
  return [new Secret(secret)];
}
