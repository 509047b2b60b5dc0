import { statfs } from 'node:fs/promises';

export interface ReadinessOptions {
  /** Throws where the database does not answer. */
  readonly askDatabase: () => Promise<void>;
  readonly platformUrl: string;
  readonly dataDir: string;
  /** How the process confines foreign files. Only reported, never a failed check: if confinement is required and missing, the process does not start. */
  readonly confinement: string;
  /** Free bytes under a folder. Default: what the system says. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

export type Check = 'ok' | `failed: ${string}`;

export interface Readiness {
  readonly ready: boolean;
  readonly confinement: string;
  readonly checks: { readonly database: Check; readonly platform: Check; readonly disk: Check };
}

const platformTimeoutMs = 3_000;
const leastFreeBytes = 256 * 1024 * 1024;

/** Checks whether this process can do its work now. Each check stands alone and reveals no more than it must. */
export async function checkReadiness({
  askDatabase,
  platformUrl,
  dataDir,
  confinement,
  freeBytes = systemFreeBytes,
}: ReadinessOptions): Promise<Readiness> {
  const [database, platform, disk] = await Promise.all([
    check('does not answer', askDatabase),
    check('does not answer', async () => {
      // Accepts any answer below 500: the check calls the address without key and token.
      const { status } = await fetch(platformUrl, {
        redirect: 'manual',
        signal: AbortSignal.timeout(platformTimeoutMs),
      });
      if (status >= 500) throw new Error(`answers ${status}`);
    }),
    check('is nearly full', async () => {
      if ((await freeBytes(dataDir)) < leastFreeBytes) throw new Error();
    }),
  ]);
  return {
    ready: [database, platform, disk].every((one) => one === 'ok'),
    confinement,
    checks: { database, platform, disk },
  };
}

async function check(reason: string, work: () => Promise<void>): Promise<Check> {
  return work().then(
    (): Check => 'ok',
    (): Check => `failed: ${reason}`,
  );
}

async function systemFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
