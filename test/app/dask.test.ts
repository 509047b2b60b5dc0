// @module-tag all
/** Steps that Dask gives room: a scheduler and a worker on this machine, by the files that the kit ships. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { beforeAll, vi } from 'vitest';
import { findProgram } from '../../scripts/needs.mjs';
import { CommandEngine } from '../../src/app/execution/command-engine.ts';
import { freePort } from '../../src/commands/free-port.ts';
import { cleanUpAfterFile } from '../support/cleanup.ts';
import { shippedTemplates, startRemoteExecutor } from '../support/executors.ts';
import { makeFolder } from '../support/folders.ts';
import { fileNeeds, unless } from '../support/needs.ts';
import { executorSuite } from '../support/suites/executor-suite.ts';

const hasDask = fileNeeds(
  unless(
    findProgram(['dask-scheduler']) !== null && findProgram(['dask-worker']) !== null,
    'there is no Dask here',
    'sudo apt-get install python3-distributed',
  ),
);

let address = '';
// Debian's Python has Debian's Dask, whatever else this shell finds first.
const path = `/usr/bin:${process.env['PATH']}`;

function start(program: string, args: readonly string[]): { said: () => string } {
  // Starts a new process group, because a worker that ends does not end its jobs.
  const child = spawn(program, args, {
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const endGroup = (signal: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, signal);
    } catch {
      // Nothing of it is left.
    }
  };
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => (text += part));
  cleanUpAfterFile(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    const late = setTimeout(() => endGroup('SIGKILL'), 5_000);
    await gone;
    clearTimeout(late);
    endGroup('SIGKILL');
  });
  return { said: () => text };
}

beforeAll(async () => {
  if (!hasDask) return;
  const port = await freePort();
  address = `tcp://127.0.0.1:${port}`;
  start('dask-scheduler', ['--host', '127.0.0.1', '--port', String(port), '--no-dashboard']);
  const folder = await makeFolder();
  const worker = start('dask-worker', [
    ...[address, '--nworkers', '1', '--nthreads', '2', '--no-dashboard'],
    ...['--resources', 'memory=8000', '--local-directory', folder],
  ]);
  await vi.waitFor(() => {
    if (!worker.said().includes('Starting established connection')) throw new Error(worker.said());
  }, 60_000);
}, 90_000);

executorSuite('Dask', {
  start: async (definition) => {
    const engine = new CommandEngine(
      { ...shippedTemplates('dask'), pollSeconds: 1 },
      {
        ...process.env,
        PATH: path,
        DASK_SCHEDULER_ADDRESS: address,
        MY_APP: fileURLToPath(definition.module),
        STEP_CONFINEMENT: 'auto',
      },
    );
    return (await startRemoteExecutor(definition, { engine })).executor;
  },
  untilGone: async () => {},
});
