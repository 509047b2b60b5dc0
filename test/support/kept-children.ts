import { cp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ChildPool, type runInChild } from '../../src/child/index.ts';
import { cleanUpAfterFile } from './cleanup.ts';
import { testConfinement } from './confinement.ts';
import { makeFolder } from './folders.ts';

let pool: Promise<ChildPool> | undefined;

async function start(): Promise<ChildPool> {
  const folder = await makeFolder();
  const started = new ChildPool({ confinement: await testConfinement(), folder, size: 4 });
  cleanUpAfterFile(async () => {
    pool = undefined;
    await started.close();
    await rm(folder, { recursive: true, force: true });
  });
  return started;
}

/** As `runInChild`, in a process that the file's tests share: the rasters are their own, and a start costs more than a small job. */
export const inKeptChild: typeof runInChild = async ({
  workFolder,
  module,
  imports = [],
  input,
  files = [],
  signal,
  onProgress,
}) =>
  (await (pool ??= start())).run({
    ...{ module, imports, input, files, signal },
    // A child sees the code that it was started for.
    owner: [module, ...imports].join(' '),
    ...(onProgress && { onProgress }),
    collect: async (from) => {
      await cp(from, workFolder, { recursive: true });
      // A pool ends a process that leaves folders.
      for (const name of await readdir(from)) await rm(join(from, name), { recursive: true });
    },
  });
