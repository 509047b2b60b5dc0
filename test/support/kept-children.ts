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

/**
 * Runs a job like `runInChild`, in a process that all tests of the file share, because the start of a process takes longer than a
 * small job. Only for trusted jobs and files. Throws if an option needs a separate process.
 */
export const inKeptChild: typeof runInChild = async ({
  workFolder,
  module,
  imports = [],
  input,
  files = [],
  signal,
  onProgress,
  onAsk,
  confinement,
  limits: _limits,
  onUsage: _onUsage,
  ...more
}) => {
  const other = Object.entries(more).filter(([, value]) =>
    Array.isArray(value) ? value.length > 0 : value !== undefined,
  );
  if (other.length > 0)
    throw new Error(`a shared child process does not support ${other.map(([name]) => name).join(', ')}`);
  if (confinement !== (await testConfinement()))
    throw new Error('a shared child process has the confinement of `testConfinement`');
  return (await (pool ??= start())).run({
    ...{ module, imports, input, files, signal },
    // A child can read only the code of the job that started it.
    owner: [module, ...imports].join(' '),
    ...(onProgress && { onProgress }),
    onAsk,
    collect: async (from) => {
      await cp(from, workFolder, { recursive: true });
      // The pool ends a process that leaves a folder behind.
      for (const name of await readdir(from)) await rm(join(from, name), { recursive: true });
    },
  });
};
