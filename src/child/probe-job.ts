/** The first job of a server: shows that a child process starts, what it starts with, and that it can write nowhere else. Opens no foreign file. */
import { randomUUID } from 'node:crypto';
import { closeSync, constants, lstatSync, openSync, readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { join, sep } from 'node:path';
import gdal from 'gdal-async';
import { FileDigests } from './file-digests.ts';
import type { Job } from './protocol.ts';

export interface ProbeOutput {
  /** Every driver that this GDAL has. */
  readonly drivers: readonly string[];
  readonly gdalVersion: string;
  /** Address space that a child asks for before it does anything; most of it is never touched. 0 where the system does not tell. */
  readonly dataBytes: number;
  /** Places outside the work folder that the child could write to, at most `maxListed`. */
  readonly writable: readonly string[];
}

const job: Job<null, ProbeOutput> = async (_input, { workFolder }) => {
  // A step needs the most address space if it has the thread for digests.
  const digests = new FileDigests();
  await digests.ofLarge([]);
  const output = {
    drivers: gdal.drivers.getNames(),
    gdalVersion: gdal.version,
    dataBytes: dataBytes(),
    writable: writablePlaces(workFolder),
  };
  await digests.close();
  return output;
};
export default job;

function dataBytes(): number {
  try {
    return Number(/^VmData:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

const maxListed = 20;
/** Devices that anybody may write to. */
const harmless = new Set(['/dev/null', '/dev/full', '/dev/random', '/dev/urandom']);

/** Tries to write to each mount, and to open each file of `/proc` and `/dev`. Writes nothing. */
function writablePlaces(workFolder: string): string[] {
  const isOwn = (path: string) => path === workFolder || path.startsWith(workFolder + sep);
  const places = [...mountPoints(), ...below('/proc'), ...below('/dev')];
  return places.filter((path) => !isOwn(path) && !harmless.has(path) && opensForWriting(path)).slice(0, maxListed);
}

/** Each mount of this process; without a `/proc`, the folders at the top. */
function mountPoints(): string[] {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => unescaped(line.split(' ')[4] ?? '/'));
  } catch {
    return ['/', ...readdirSync('/').map((name) => `/${name}`)];
  }
}

/** The kernel writes blanks and backslashes in octal there. */
const unescaped = (path: string) =>
  path.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/** Files and folders below a folder, without those of single processes and their threads; links are not followed. */
function below(folder: string): string[] {
  const entries = (() => {
    try {
      return readdirSync(folder, { withFileTypes: true });
    } catch {
      return [];
    }
  })();
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink() || (folder === '/proc' && /^\d+$/.test(entry.name))) return [];
    return entry.isDirectory() ? [path, ...below(path)] : [path];
  });
}

function opensForWriting(path: string): boolean {
  try {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NONBLOCK } = constants;
    const isFolder = lstatSync(path).isDirectory();
    const file = isFolder ? join(path, `probe-${randomUUID()}`) : path;
    closeSync(openSync(file, O_WRONLY | O_NONBLOCK | (isFolder ? O_CREAT | O_EXCL : 0), 0o600));
    if (isFolder) unlinkSync(file);
    return true;
  } catch {
    return false;
  }
}
