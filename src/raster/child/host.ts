import { mkdir } from 'node:fs/promises';
import { ChildRunner, type ChildLimits } from './runner.ts';
import type { Confinement } from './confinement.ts';
import { makeLinks, planLending, removeLinks, type Lend, type LentFile } from './lend-file.ts';

export interface ChildJob {
  /** Module whose default export is the `Job`. */
  readonly module: URL;
  /** Plain data. */
  readonly input: unknown;
  /** Foreign files: the job finds them in `context.files`, read-only. Default: none. */
  readonly files?: readonly LentFile[];
  readonly signal?: AbortSignal;
  readonly onProgress?: (fraction: number, note: string | null) => void;
  /** Resident memory of the child and of all that it has started, as sampled. */
  readonly onMemory?: (bytes: number) => void;
}

export interface ChildJobOptions extends ChildJob {
  readonly confinement: Confinement;
  /** The child's own folder, made where it is not there: its temporary files go there, and its size is limited. */
  readonly workFolder: string;
  /** Further files and folders that the job reads where they are: its code, a model. */
  readonly reads?: readonly string[];
  readonly limits?: ChildLimits;
}

/** Where a confined child finds the files that it is lent. */
const confinedInputs = '/input';

/**
 * Runs one job in a process of its own, so that neither a hostile file nor a crash, a leak or an endless
 * loop of GDAL can touch the server. Rejects with `ChildJobError`, or with the signal's reason after a
 * cancel; when it settles the child is gone, with all that it had started.
 */
export async function runInChild<Output>({ files = [], reads = [], ...options }: ChildJobOptions): Promise<Output> {
  options.signal?.throwIfAborted();
  await mkdir(options.workFolder, { recursive: true });
  const linkFolder = `${options.workFolder}.lent`;
  const isConfined = options.confinement.kind === 'bubblewrap';
  const { paths, lends } = planLending(files, isConfined ? confinedInputs : linkFolder);
  if (!isConfined) await makeLinks(lends, { mayBeSymbolic: true });
  const binds: readonly Lend[] = isConfined ? lends : [];
  let child: ChildRunner | null = null;
  try {
    child = new ChildRunner({ ...options, place: { workFolder: options.workFolder, reads: [...reads, folderOf(options.module)], lends: binds } });
    return await child.run<Output>({ ...options, paths });
  } finally {
    await child?.end();
    if (!isConfined) await removeLinks(linkFolder);
  }
}

/** The code of a job lies with its module. */
export function folderOf(module: URL): string {
  return decodeURIComponent(new URL('.', module).pathname).replace(/\/$/, '');
}
