import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeBeside } from './bubblewrap.ts';
import type { ChildJob } from './child-job.ts';
import { makeWorkFolder } from './child-user.ts';
import { ChildJobError, type ChildLimits } from './limits.ts';
import { ChildRunner } from './runner.ts';
import type { Confinement } from './confinement.ts';
import { makeLinks, planLending, readableLends, removeLinks } from './lend-file.ts';

export interface ChildJobOptions extends ChildJob {
  readonly confinement: Confinement;
  /** The child's own folder, made where it is not there: its temporary files go there, and its size is limited. */
  readonly workFolder: string;
  /** Further files and folders that the job reads where they are: a model. */
  readonly reads?: readonly string[];
  readonly limits?: ChildLimits | undefined;
  /** Each line that the child prints, stdout and stderr. Default: nobody reads stdout. */
  readonly onPrinted?: ((line: string) => void) | undefined;
  /** Port of this machine's loopback at which the child waits for a debugger. Only without confinement: that has no network. */
  readonly inspectPort?: number | undefined;
}

/** Folder in which a confined child finds the files that the host lends. */
const confinedInputs = '/input';

/**
 * Runs one job in a process of its own, so that neither a hostile file nor a crash, a leak or an endless
 * loop of GDAL can touch the server. Rejects with `ChildJobError`, with `ReportedJobError`, or with the signal's reason after a
 * cancel; when it settles the child is gone, with all that it had started.
 */
export async function runInChild<Output>({
  files = [],
  reads = [],
  imports = [],
  ...options
}: ChildJobOptions): Promise<Output> {
  options.signal?.throwIfAborted();
  const { confinement } = options;
  const user = confinement.newUser();
  if (user !== null) for (const module of [options.module, ...imports]) await requireReadable(folderOf(module));
  await makeWorkFolder(options.workFolder, user);
  const linkFolder = `${options.workFolder}.lent`;
  const isConfined = confinement.kind === 'bubblewrap';
  const { paths, lends } = planLending(files, isConfined ? confinedInputs : linkFolder);
  let child: ChildRunner | null = null;
  try {
    if (!isConfined) await makeLinks(lends, { mayBeSymbolic: true, readableIn: null });
    const binds =
      user === null ? lends : await readableLends(lends, { folders: confinement.ownFolders, copyFolder: linkFolder });
    child = new ChildRunner({
      ...options,
      place: {
        workFolder: options.workFolder,
        reads: [...reads, folderOf(options.module), ...imports.flatMap(codeBeside)],
        lends: isConfined ? binds : [],
        user,
      },
    });
    const output = await child.run<Output>({ ...options, paths });
    await child.end();
    // It could write until its end.
    await child.requireDiskLimit();
    return output;
  } finally {
    await child?.end();
    confinement.warmUp([options.module, ...imports]);
    await removeLinks(linkFolder);
  }
}

const othersMayLook = 0o005;

/** Throws `ChildJobError` if a child that runs as another user could not load the code in a folder. */
async function requireReadable(folder: string): Promise<void> {
  if (((await stat(folder)).mode & othersMayLook) === othersMayLook) return;
  throw new ChildJobError(
    'code_unreadable',
    `root runs this server, so child processes run as other users, and only root may look into ${folder}: run the server as the folder's own user, or chmod -R a+rX the folder`,
    { kind: 'bug' },
  );
}

/** The code of a job lies with its module. */
export function folderOf(module: URL): string {
  return dirname(fileURLToPath(module));
}
