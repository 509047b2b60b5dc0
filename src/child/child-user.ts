/** The users that child processes run as where root runs the server. */
import { randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, chown, copyFile, mkdir, stat } from 'node:fs/promises';
import { dirname, sep } from 'node:path';

/**
 * The user of one child. Each child has another, so that no child owns what it is lent, and what the kernel limits for a
 * user (processes, pending signals, pages of pipes) is used up by one child alone.
 */
export interface ChildUser {
  readonly uid: number;
  readonly gid: number;
}

/** Users that no account and no container has, by systemd's table of ranges. */
const firstUser = 1_900_000_000;
const userCount = 200_000_000;
/** Group of files that only children and their server read. */
export const lentGroup = firstUser - 1;

let count = randomInt(userCount);

export function newChildUser(): ChildUser {
  count = (count + 1) % userCount;
  const id = firstUser + count;
  return { uid: id, gid: id };
}

/** Arguments of `setpriv`: everything that follows runs as that user, without a capability. */
export const asUser = ({ uid, gid }: ChildUser): string[] => [
  ...[`--reuid=${uid}`, `--regid=${gid}`, `--groups=${lentGroup}`],
  ...['--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all'],
];

/** Makes the folder that a child works in, for that child alone. */
export async function makeWorkFolder(path: string, user: ChildUser | null): Promise<void> {
  await mkdir(path, { recursive: true });
  if (user === null) return;
  // Bubblewrap enters it as the server's group, since it has no right to look into other users' folders by then.
  await chown(path, user.uid, process.getgid?.() ?? 0);
  await chmod(path, 0o710);
}

/** Makes a folder that children look into, whatever the umask is. */
export async function makeReadableFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o755);
}

const otherMayRead = 0o004;
const groupMayRead = 0o040;

/**
 * Lets children of other users read a file of the server. A file in one of the server's own `folders` is given to their
 * group; of any other, a copy is made at `copyPath`, because its owner's rights are not the kit's to change. Returns the
 * path to lend.
 */
export async function readableFile(
  path: string,
  { folders, copyPath }: { readonly folders: readonly string[]; readonly copyPath: string },
): Promise<string> {
  const { mode, uid, gid } = await stat(path);
  if ((mode & otherMayRead) !== 0 || (gid === lentGroup && (mode & groupMayRead) !== 0)) return path;
  if (folders.some((folder) => path.startsWith(folder + sep))) {
    await chown(path, uid, lentGroup);
    await chmod(path, (mode & 0o777) | groupMayRead);
    return path;
  }
  await makeReadableFolder(dirname(copyPath));
  await copyFile(path, copyPath, constants.COPYFILE_FICLONE);
  await chmod(copyPath, 0o444);
  return copyPath;
}
