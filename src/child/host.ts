import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeBeside } from './bubblewrap.ts';
import type { ChildJob } from './child-job.ts';
import type { ChildLimits } from './limits.ts';
import { ChildRunner } from './runner.ts';
import type { Confinement } from './confinement.ts';
import { makeLinks, planLending, removeLinks, type Lend } from './lend-file.ts';

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
 * loop of GDAL can touch the server. Rejects with `ChildJobError`, or with the signal's reason after a
 * cancel; when it settles the child is gone, with all that it had started.
 */
export async function runInChild<Output>({
  files = [],
  reads = [],
  imports = [],
  ...options
}: ChildJobOptions): Promise<Output> {
  options.signal?.throwIfAborted();
  await mkdir(options.workFolder, { recursive: true });
  const linkFolder = `${options.workFolder}.lent`;
  const isConfined = options.confinement.kind === 'bubblewrap';
  const { paths, lends } = planLending(files, isConfined ? confinedInputs : linkFolder);
  if (!isConfined) await makeLinks(lends, { mayBeSymbolic: true });
  const binds: readonly Lend[] = isConfined ? lends : [];
  let child: ChildRunner | null = null;
  try {
    child = new ChildRunner({
      ...options,
      place: {
        workFolder: options.workFolder,
        reads: [...reads, folderOf(options.module), ...imports.flatMap(codeBeside)],
        lends: binds,
      },
    });
    return await child.run<Output>({ ...options, paths });
  } finally {
    await child?.end();
    options.confinement.warmUp([options.module, ...imports]);
    if (!isConfined) await removeLinks(linkFolder);
  }
}

/** The code of a job lies with its module. */
export function folderOf(module: URL): string {
  return dirname(fileURLToPath(module));
}
