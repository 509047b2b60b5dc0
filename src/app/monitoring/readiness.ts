import { statfs } from 'node:fs/promises';
import { reach } from '../../platform-client/index.ts';

export interface ReadinessOptions {
  /** Throws where the database does not answer. */
  readonly askDatabase: () => Promise<void>;
  readonly platformUrl: string;
  readonly dataDir: string;
  /** False until this process takes runs. Always true for a process that takes none. */
  readonly isWorking: () => boolean;
  /** Null, or why this process takes no more work: it ends, or a newer release has changed the database. */
  readonly standsAside: () => string | null;
  /** False if the last child process could not start. */
  readonly canStartChildren: () => boolean;
  /**
   * Describes the confinement of foreign files. Reported only, never a failed check: a process that lacks a required
   * confinement does not start.
   */
  readonly confinement: string;
  /** Free bytes under a folder. Default: what the system says. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

export type Check = 'ok' | `failed: ${string}`;

export interface Readiness {
  readonly ready: boolean;
  readonly confinement: string;
  /** Checks of this process. It is ready only if all of them pass. */
  readonly checks: { readonly worker: Check; readonly children: Check; readonly disk: Check };
  /** Services that all processes share. Their failure does not change `ready`. */
  readonly dependencies: { readonly database: Check; readonly platform: Check };
}

/** Maximum duration of a check. A check that hangs must not delay the probe. */
const answerWithinMs = 3_000;
const leastFreeBytes = 256 * 1024 * 1024;

/** Checks whether this process can do its work now. Each check stands alone and reveals no more than it must. */
export async function checkReadiness({
  askDatabase,
  platformUrl,
  dataDir,
  isWorking,
  standsAside,
  canStartChildren,
  confinement,
  freeBytes = freeBytesOf,
}: ReadinessOptions): Promise<Readiness> {
  const [worker, children, disk, database, platform] = await Promise.all([
    check(standsAside() ?? 'takes no runs yet', () => {
      if (!isWorking() || standsAside() !== null) throw new Error();
    }),
    check('cannot be started', () => {
      if (!canStartChildren()) throw new Error();
    }),
    check('is nearly full', async () => {
      if ((await freeBytes(dataDir)) < leastFreeBytes) throw new Error();
    }),
    check('does not answer', askDatabase),
    check('does not answer', async () => {
      // Accepts any answer below 500: the check calls the address without key and token.
      if ((await reach(platformUrl, answerWithinMs)) >= 500) throw new Error();
    }),
  ]);
  return {
    ready: [worker, children, disk].every((state) => state === 'ok'),
    confinement,
    checks: { worker, children, disk },
    dependencies: { database, platform },
  };
}

async function check(reason: string, work: () => unknown): Promise<Check> {
  return inTime(Promise.resolve().then(work)).then(
    (): Check => 'ok',
    (): Check => `failed: ${reason}`,
  );
}

/** Rejects if `promise` has not settled after three seconds. */
export async function inTime<T>(promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('no answer in time')), answerWithinMs);
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Free bytes of the disk of a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
