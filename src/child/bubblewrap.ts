/** The arguments of bubblewrap: what a child process sees of the machine. */
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kitRoot } from '../files/index.ts';
import type { ChildUser } from './child-user.ts';

/** Files and folders that one child process may read and write, in addition to programs and libraries. */
export interface ChildPlace {
  /** Made by the caller; the only folder that the child can write to. */
  readonly workFolder: string;
  /** Files and folders that the child reads where they are: code, models. */
  readonly reads: readonly string[];
  /** A folder in which files are lent one after the other; read-only. */
  readonly inbox?: string;
  /** Foreign files: where they are, and where the child finds them. */
  readonly lends: readonly { readonly from: string; readonly to: string }[];
  /** Owner of the work folder, made by `Confinement.newUser`. Null: the server's own user. */
  readonly user: ChildUser | null;
}

/** Differences between machines. The first variant that works is used. */
export interface BubblewrapVariant {
  /** A /proc of the child's own. A container whose /proc is masked lets nobody mount one: there the child has none. */
  readonly hasProc: boolean;
  /** True if the kernel filters the child's system calls (`seccomp.ts`). */
  readonly filters: boolean;
  /**
   * True if root makes the mounts and then becomes another user. Otherwise the child keeps the server's user, in a user
   * namespace without capabilities: checks of the kernel by user number, such as those of `/proc/sys`, then see the server's user.
   */
  readonly dropsRoot: boolean;
  /** Takes the right to make further namespaces away; bubblewrap 0.8 and later. */
  readonly disablesUserNamespaces: boolean;
}

/** Variants in the order in which they are tried. */
export function variantsFor({ isRoot, canFilter }: { isRoot: boolean; canFilter: boolean }): BubblewrapVariant[] {
  const users = [
    ...(isRoot ? [{ dropsRoot: true, disablesUserNamespaces: false }] : []),
    { dropsRoot: false, disablesUserNamespaces: true },
    { dropsRoot: false, disablesUserNamespaces: false },
  ];
  return (canFilter ? [true, false] : [false]).flatMap((filters) =>
    users.flatMap((user) => [true, false].map((hasProc) => ({ filters, hasProc, ...user }))),
  );
}

/** The descriptor on which bubblewrap is given the filter. */
export const filterDescriptor = 4;

/** Programs, libraries and their data: of Node, GDAL, PROJ, and of what a step may start. Not all of /usr: a server's own files may lie below it. */
const systemFolders = [
  'bin',
  'sbin',
  'lib',
  'lib32',
  'lib64',
  'libx32',
  'libexec',
  'share',
  'local/bin',
  'local/lib',
  'local/lib64',
  'local/share',
].map((name) => `/usr/${name}`);
/** PATH of every child. */
export const programPath = '/usr/local/bin:/usr/bin:/bin';
/** Links into /usr on a merged system, folders on others. */
const rootFolders = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Settings for the loader, time zones, fonts and Debian's alternatives. None names a user or a secret. */
const settings = ['/etc/ld.so.cache', '/etc/alternatives', '/etc/localtime', '/etc/fonts'];

/** The kit's code and its packages, wherever a package manager has put them. */
function codeFolders(): string[] {
  return [...['src', 'dist', 'package.json'].map((name) => join(kitRoot, name)), ...packagesFor(kitRoot)].filter(
    (path) => existsSync(path),
  );
}

/**
 * Lists the code that a module of a project may import: its folder, the rest of the `src` that contains it, and the
 * project's packages. Never the whole folder of the project, because data may be there.
 */
export function codeBeside(module: URL): string[] {
  const folder = dirname(fileURLToPath(module));
  let root = folder;
  while (root !== dirname(root) && !existsSync(join(root, 'package.json'))) root = dirname(root);
  const source = join(root, 'src');
  const ofProject = isInside(folder, source) ? [source] : [];
  return [folder, ...ofProject, join(root, 'package.json'), ...packagesFor(folder)].filter((path) => existsSync(path));
}

/** Lists the folders in which Node looks for packages, from this folder upwards. */
function packagesFor(from: string): string[] {
  const found: string[] = [];
  for (let folder = from; ; folder = dirname(folder)) {
    found.push(join(folder, 'node_modules'));
    if (folder === dirname(folder)) return found;
  }
}

/** Devices that programs cannot do without. `/dev/zero` gives shared pages that no resident size shows, terminals hold memory of the kernel. */
const devices = ['null', 'full', 'random', 'urandom'].map((name) => `/dev/${name}`);
const descriptorLinks = [
  ['/proc/self/fd', '/dev/fd'],
  ['/proc/self/fd/0', '/dev/stdin'],
  ['/proc/self/fd/1', '/dev/stdout'],
  ['/proc/self/fd/2', '/dev/stderr'],
];

/** Own namespaces of everything, no terminal, and an end with the parent. Without a user namespace, `setpriv` takes the last capabilities away. */
function namespaces({ dropsRoot, disablesUserNamespaces }: BubblewrapVariant): string[] {
  const user = dropsRoot
    ? [
        ...['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
        ...['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID', '--cap-add', 'CAP_SETPCAP'],
      ]
    : ['--unshare-user', '--unshare-all', '--cap-drop', 'ALL', ...(disablesUserNamespaces ? ['--disable-userns'] : [])];
  return [...user, '--die-with-parent', '--new-session'];
}

/** The namespaces, then the mounts in the order in which they are made. Each mount except the work folder is read-only. */
export function bubblewrapArguments(
  place: ChildPlace,
  variant: BubblewrapVariant,
  options: {
    readonly hidden: readonly string[];
    readonly readable: readonly string[];
    /** Folders of the kit that the child finds elsewhere. */
    readonly moved: readonly { readonly from: string; readonly to: string }[];
  },
): string[] {
  const readOnly = (path: string) => ['--ro-bind', path, path];
  const system = systemFolders.filter((path) => existsSync(path));
  const covered = (path: string) => [...system, ...rootFolders].some((folder) => isInside(path, folder));
  const reads = [...codeFolders(), process.execPath, ...options.readable, ...place.reads];
  // Data of the servers stays hidden, in any folder.
  const hidden = options.hidden.filter(
    (path) => existsSync(path) && (covered(path) || reads.some((readable) => isInside(path, readable))),
  );
  return [
    ...namespaces(variant),
    ...(variant.filters ? ['--seccomp', String(filterDescriptor)] : []),
    // Bubblewrap makes the folders that lead to a mount for its own user alone.
    ...foldersTo([...system, ...settings, ...reads, ...hidden, ...options.moved.map(({ to }) => to)]),
    ...system.flatMap(readOnly),
    ...rootFolders.flatMap(linkOrFolder),
    ...settings.filter((path) => existsSync(path)).flatMap(readOnly),
    // A kit that lies among the programs is no program.
    ...(covered(kitRoot) ? ['--tmpfs', kitRoot] : []),
    ...[...new Set(reads)].flatMap(readOnly),
    ...options.moved.flatMap(({ from, to }) => ['--ro-bind', from, to]),
    ...hidden.flatMap((path) => ['--tmpfs', path]),
    // These may lie below a folder that has just been hidden.
    ...foldersTo([
      ...[place.workFolder, ...place.lends.map(({ to }) => to)],
      ...(place.inbox === undefined ? [] : [place.inbox]),
    ]),
    ...(place.inbox === undefined ? [] : readOnly(place.inbox)),
    // The kernel lists the keys of the server's session in /proc/keys, and takes settings in /proc/sys.
    ...(variant.hasProc
      ? ['--proc', '/proc', '--ro-bind-try', '/dev/null', '/proc/keys', '--remount-ro', '/proc']
      : ['--dir', '/proc']),
    ...['--tmpfs', '/dev', ...devices.filter((path) => existsSync(path)).flatMap((path) => ['--dev-bind', path, path])],
    ...[...descriptorLinks.flatMap(([to, at]) => ['--symlink', to ?? '', at ?? '']), '--remount-ro', '/dev'],
    ...place.lends.flatMap(({ from, to }) => ['--ro-bind', from, to]),
    ...['--bind', place.workFolder, place.workFolder],
    // Nothing is writable but the work folder: what is covered up is no place to write to either.
    ...[...hidden, ...(covered(kitRoot) ? [kitRoot] : [])].flatMap((path) => ['--remount-ro', path]),
    ...['--remount-ro', '/', '--chdir', place.workFolder],
  ];
}

/** Makes the folders above these paths, the upper ones first. */
function foldersTo(paths: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const path of paths)
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) folders.add(folder);
  return [...folders]
    .filter((folder) => !isBelowLink(folder))
    .sort((a, b) => a.length - b.length)
    .flatMap((folder) => ['--dir', folder]);
}

/** True for what a link at the top leads to, as `/lib/x` on a merged system. */
const isBelowLink = (path: string) =>
  rootFolders.some((root) => isInside(path, root) && existsSync(root) && lstatSync(root).isSymbolicLink());

function linkOrFolder(path: string): string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink()
    ? ['--symlink', readlinkSync(path), path]
    : ['--ro-bind', realpathSync(path), path];
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder + sep);
}
