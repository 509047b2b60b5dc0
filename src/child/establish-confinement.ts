import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { KitError } from '../contract/kit-error.ts';
import { messageOf, scratchFolder } from '../files/index.ts';
import { bubblewrapArguments, programPath, variantsFor, type BubblewrapVariant } from './bubblewrap.ts';
import { delegatedGroups } from './cgroup.ts';
import { asUser, newChildUser, type ChildUser } from './child-user.ts';
import { keptDrivers } from './drivers.ts';
import type { Confinement, ProcessLimits } from './confinement.ts';
import { runInChild } from './host.ts';
import type { ProbeOutput } from './probe-job.ts';
import { seccompFilter } from './seccomp.ts';
import { createWarmUp } from './warm-up.ts';

/** `required`: no start without it. `auto`: used where it works. `none`: not used. */
export const confinementModes = ['required', 'auto', 'none'] as const;
export type ConfinementMode = (typeof confinementModes)[number];

export interface ConfinementOptions {
  readonly mode: ConfinementMode;
  /** Folders that no child may see even where they lie below one that it reads: data folders. */
  readonly hidden?: readonly string[];
  /** Folders of `hidden` whose files are the server's to change: it may let children of other users read them. Default: all. */
  readonly own?: readonly string[];
  /** `CONFINEMENT_READS`: further folders that children may read, where libraries or data of GDAL lie elsewhere than usual. */
  readonly readable?: readonly string[];
  /** Receives one line if children run unconfined and nobody has asked for that. */
  readonly warn: (message: string) => void;
  /** Search path for programs. Default: the process's own. */
  readonly path?: string;
}

/** Confinement is required, and does not work here. */
export class ConfinementError extends KitError {
  constructor({ reason, remedy }: Obstacle) {
    super(
      'not_confined',
      `the kit cannot confine child processes: ${reason}\nThe kit opens foreign files in child processes that bubblewrap keeps from everything else. ${remedy}. ` +
        'STEP_CONFINEMENT=none starts without, which is right only where every file is your own.',
    );
  }
}

/** The reason for which children are not confined, and what an operator does about it. */
interface Obstacle {
  readonly reason: string;
  readonly remedy: string;
}

/** Maximum time for the probe. It starts a child that loads GDAL, which takes most of the time. */
const probeTimeoutMs = 60_000;
const nodeArguments = ['--disable-warning=ExperimentalWarning'];

/**
 * Finds out how children can be confined on this machine, by starting one. Throws `ConfinementError` where `mode` is
 * `required` and they cannot.
 */
export async function establishConfinement(options: ConfinementOptions): Promise<Confinement> {
  const programs = new Programs(options.path ?? process.env['PATH'] ?? '');
  const delegated = delegatedGroups();
  const obstacle = options.mode === 'none' ? notWanted : bubblewrapObstacle(programs);
  if (obstacle !== null) return unconfined(obstacle, programs, delegated, options);
  const failures: string[] = [];
  let isWritable = false;
  const filter = seccompFilter();
  const isRoot = runsAsRoot() && programs.find('setpriv') !== null;
  for (const variant of variantsFor({ isRoot, canFilter: filter !== null })) {
    try {
      return await probed((known) =>
        bubblewrap(programs, variant, variant.filters ? filter : null, delegated, options, known),
      );
    } catch (error) {
      failures.push(reasonOf(error));
      isWritable ||= error instanceof WritableError;
      // Only a missing /proc could mend this, and a child without one cannot list its mounts.
      if (error instanceof WritableError && !error.isOfProc) break;
    }
  }
  const remedy = isWritable
    ? 'Mount these places read-only where the server runs'
    : 'Let it make user namespaces: docs/deploy.md has the options for Docker and Kubernetes';
  const reason = `bubblewrap does not work here: ${failures[0] ?? ''}`;
  return unconfined({ reason, remedy }, programs, delegated, options);
}

type Delegated = ReturnType<typeof delegatedGroups>;

const runsAsRoot = () => process.getuid?.() === 0;

const asRootText =
  'THIS SERVER IS RUN BY ROOT: run it as its own user (User= of a systemd unit, USER of an image, runAsNonRoot of a pod)';
const childrenAsRootText =
  'CHILD PROCESSES RUN AS ROOT, since this machine does not let the server make them another user: without capabilities, but the kernel takes them for root';
const unboundedText =
  'The memory of child processes is watched, not bounded: between two looks a child may use more than its limit. Delegate control groups to the server (docs/deploy.md)';

/** Reports of both servers at their start. */
function weaknessesOf({ dropsRoot, delegated }: { dropsRoot: boolean; delegated: Delegated }): string[] {
  return [
    ...(runsAsRoot() ? [asRootText] : []),
    ...(runsAsRoot() && !dropsRoot ? [childrenAsRootText] : []),
    ...(delegated === null ? [unboundedText] : []),
  ];
}

const memoryOf = (delegated: Delegated) => (delegated === null ? ', memory watched, not bounded' : ', control groups');

const notWanted: Obstacle = { reason: 'STEP_CONFINEMENT=none', remedy: 'Remove that setting' };

function bubblewrapObstacle(programs: Programs): Obstacle | null {
  if (process.platform !== 'linux')
    return {
      reason: `bubblewrap needs Linux, and this is ${process.platform}`,
      remedy: 'Run the kit on Linux, or in its images',
    };
  if (programs.find('bwrap') !== null) return null;
  return { reason: 'bubblewrap is not installed', remedy: 'Install it (apt-get install bubblewrap)' };
}

async function unconfined(
  obstacle: Obstacle,
  programs: Programs,
  delegated: Delegated,
  { mode, warn }: ConfinementOptions,
): Promise<Confinement> {
  const { reason, remedy } = obstacle;
  if (mode === 'required') throw new ConfinementError(obstacle);
  if (mode === 'auto')
    warn(`FOREIGN FILES ARE OPENED UNCONFINED: ${reason}. A hostile file could read what this process can. ${remedy}.`);
  return probed((known) => ({
    kind: 'none',
    filter: null,
    summary: `none (${reason})${memoryOf(delegated)}`,
    weaknesses: weaknessesOf({ dropsRoot: false, delegated }),
    gdalVersion: known.gdalVersion,
    ownFolders: [],
    newUser: () => null,
    group: (limits) => delegated?.(limits) ?? null,
    command(_place, limits) {
      const prefix = [
        ...programs.command('setpriv', '--pdeathsig', 'KILL'),
        ...programs.command('prlimit', ...limitArguments(limits, known)),
      ];
      return [...programs.closingDescriptors(), ...prefix, process.execPath, ...nodeArguments];
    },
    // They fill the cache themselves.
    warmUp: () => {},
    environment: (workFolder) => environment(workFolder, known, 'no'),
  }));
}

function bubblewrap(
  programs: Programs,
  variant: BubblewrapVariant,
  filter: Buffer | null,
  delegated: Delegated,
  { hidden = [], own = hidden, readable = [] }: ConfinementOptions,
  known: ProbeOutput,
): Confinement {
  const program = programs.find('bwrap') ?? 'bwrap';
  const cache = getCompileCacheDir();
  const further = [
    ...readable,
    ...pathsOf(gdalVariables),
    ...(!variant.dropsRoot && cache !== undefined && existsSync(cache) ? [cache] : []),
  ];
  return {
    kind: 'bubblewrap',
    filter,
    summary: [
      `bubblewrap${filter ? '' : ', without a filter of system calls'}${variant.hasProc ? '' : ', without a /proc'}`,
      runsAsRoot() && !variant.dropsRoot ? ', children run as root' : '',
      memoryOf(delegated),
    ].join(''),
    weaknesses: weaknessesOf({ dropsRoot: variant.dropsRoot, delegated }),
    gdalVersion: known.gdalVersion,
    ownFolders: own,
    newUser: () => (variant.dropsRoot ? newChildUser() : null),
    group: (limits) => delegated?.(limits) ?? null,
    command(place, limits) {
      // Within the namespaces, where the number of processes is counted anew.
      const limited = programs.command('prlimit', ...limitArguments(limits, known), `--nproc=${maxTasks}`);
      return [
        ...programs.closingDescriptors(),
        program,
        ...bubblewrapArguments(place, variant, {
          hidden,
          readable: further,
          moved: cache === undefined || place.user === null ? [] : compileCacheFor(cache, place.user),
        }),
        '--',
        ...(place.user === null ? [] : programs.command('setpriv', ...asUser(place.user))),
        ...limited,
        process.execPath,
        ...nodeArguments,
      ];
    },
    warmUp: cache === undefined ? () => {} : createWarmUp(cache, environment(tmpdir(), known, 'no')),
    environment: (workFolder) => ({
      ...environment(workFolder, known, 'yes'),
      ...(variant.dropsRoot && { NODE_COMPILE_CACHE: compileCacheOfUsers }),
    }),
  };
}

/** Compile cache of children that run as other users. */
const compileCacheOfUsers = '/compile-cache';

/** Places of the server's compile cache for a child of another user: Node names the folders in it by the user. */
function compileCacheFor(cache: string, { uid }: ChildUser): { from: string; to: string }[] {
  const ofServer = `-${process.getuid?.() ?? 0}`;
  const names = existsSync(cache)
    ? readdirSync(cache).filter((name) => name.startsWith('v') && name.endsWith(ofServer))
    : [];
  return names.map((name) => ({
    from: join(cache, name),
    to: join(compileCacheOfUsers, `${name.slice(0, -ofServer.length)}-${uid}`),
  }));
}

/** Threads count, and Node has a dozen. The kernel does not hold root to it, and the host counts. */
const maxTasks = 1_024;

/** Each pipe and socket holds memory that no resident size shows. A scene of 200 files fits. */
const maxDescriptors = 512;

/** Beside what a child asks for at its start, and never touches. */
function limitArguments({ memoryBytes, fileBytes }: ProcessLimits, { dataBytes }: ProbeOutput): string[] {
  return [
    '--core=0',
    '--memlock=0',
    `--nofile=${atMost('Max open files', maxDescriptors)}`,
    `--fsize=${atMost('Max file size', fileBytes)}`,
    ...(dataBytes > 0 ? [`--data=${atMost('Max data size', memoryBytes + dataBytes)}`] : []),
  ];
}

/** A limit, or the hard one that this process has inherited where that is lower: only root could raise it. */
function atMost(name: string, wanted: number): number {
  hardLimits ??= readHardLimits();
  return Math.min(wanted, hardLimits.get(name) ?? Infinity);
}

let hardLimits: ReadonlyMap<string, number> | undefined;

/** Hard limits of this process, by the kernel's names for them. Empty on a system without `/proc`. */
function readHardLimits(): ReadonlyMap<string, number> {
  try {
    const rows = readFileSync('/proc/self/limits', 'utf8').matchAll(/^(Max [a-z ]+?) {2,}\S+ +(\d+)/gm);
    return new Map([...rows].map(([, name = '', hard]) => [name, Number(hard)]));
  } catch {
    return new Map();
  }
}

/** A confined child could write to these places. */
class WritableError extends Error {
  readonly isOfProc: boolean;

  constructor(places: readonly string[]) {
    super(`a child process could write outside its folder: ${places.join(', ')}`);
    this.isOfProc = places.every((path) => path.startsWith('/proc/'));
  }
}

/** Returns the result of `make`, after one of its children has run and has reported its GDAL. */
async function probed(make: (known: ProbeOutput) => Confinement): Promise<Confinement> {
  const nothingKnown = { drivers: [], gdalVersion: '', dataBytes: 0, writable: [] };
  const folder = scratchFolder('probe');
  try {
    const module = new URL('./probe-job.ts', import.meta.url);
    const known = await runInChild<ProbeOutput>({
      module,
      input: null,
      workFolder: folder.path,
      confinement: make(nothingKnown),
      limits: { timeoutMs: probeTimeoutMs },
    });
    const confinement = make(known);
    if (confinement.kind !== 'none' && known.writable.length > 0) throw new WritableError(known.writable);
    return confinement;
  } finally {
    await folder.remove();
  }
}

function reasonOf(error: unknown): string {
  const stderr =
    error instanceof KitError && typeof error.data['stderr'] === 'string'
      ? error.data['stderr'].trim().split('\n').at(-1)
      : undefined;
  return stderr || messageOf(error);
}

const gdalVariables = ['GDAL_DATA', 'PROJ_LIB', 'PROJ_DATA', 'LD_LIBRARY_PATH'];
const harmlessVariables = ['LANG', 'LC_ALL', 'TZ', ...gdalVariables];

function pathsOf(variables: readonly string[]): string[] {
  return variables
    .flatMap((name) => (process.env[name] ?? '').split(delimiter))
    .filter((path) => path !== '' && existsSync(path));
}

/** An address where nobody listens. Without a namespace, it stops GDAL from fetching anything. */
const noNetwork = 'http://127.0.0.1:9';

/** Made from nothing: where things are found, and what GDAL must not do. `CONFINED` tells the child what it may open. */
function environment(workFolder: string, { drivers }: ProbeOutput, confined: 'yes' | 'no'): Record<string, string> {
  const kept = keptDrivers({ confined: confined === 'yes' });
  const inherited = harmlessVariables.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  );
  const cache = getCompileCacheDir();
  return {
    ...Object.fromEntries(inherited),
    ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }),
    CONFINED: confined,
    PATH: programPath,
    HOME: workFolder,
    TMPDIR: workFolder,
    CPL_TMPDIR: workFolder,
    // Drivers of both kinds, raster and vector. Names contain spaces, so commas separate them.
    GDAL_SKIP: drivers.filter((name) => !kept.has(name)).join(','),
    GDAL_CACHEMAX: '128',
    GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR',
    GDAL_PAM_ENABLED: 'NO',
    // A mask is part of the file that is delivered.
    GDAL_TIFF_INTERNAL_MASK: 'YES',
    GDAL_HTTP_PROXY: noNetwork,
    http_proxy: noNetwork,
    https_proxy: noNetwork,
    all_proxy: noNetwork,
    GDAL_HTTP_MAX_RETRY: '0',
    CPL_VSIL_CURL_ALLOWED_EXTENSIONS: '.none',
    GDAL_NETCDF_VERIFY_DIMS: 'NO',
    // A GeoPackage says when it was written; the same features are to make the same file.
    OGR_CURRENT_DATE: '1980-01-01T00:00:00.000Z',
  };
}

/** Programs of the system, by PATH. */
class Programs {
  #folders: readonly string[];

  constructor(path: string) {
    this.#folders = path.split(delimiter).filter((folder) => folder !== '');
  }

  find(name: string): string | null {
    const folder = this.#folders.find((parentFolder) => existsSync(join(parentFolder, name)));
    return folder === undefined ? null : join(folder, name);
  }

  /**
   * Runs what follows with no descriptor but those that it is meant to have: whoever started the server may have left it
   * others, and they would lead out. Nothing where the system has no bash.
   */
  closingDescriptors(): string[] {
    const close =
      'for f in /proc/self/fd/*; do n=${f##*/}; [ "$n" -gt 4 ] && eval "exec $n>&-" 2>/dev/null; done; exec "$@"';
    return this.command('bash', '-c', close, 'child');
  }

  /** The program and its arguments; nothing where the system does not have it. */
  command(name: string, ...args: readonly string[]): string[] {
    const found = this.find(name);
    return found === null ? [] : [found, ...args];
  }
}
