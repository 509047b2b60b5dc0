import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { listenError, urlOf } from '../../../server/index.ts';
import type { PassedCall } from './forward.ts';

/** What the thread that forwards is given. */
export interface WorkerInput {
  readonly upstream: string;
  readonly host: string;
  readonly port: number;
}

/** A message of that thread. */
export interface FromWorker {
  /** The port that was taken. */
  readonly port?: number;
  /** Code of the system's error, if it cannot listen. */
  readonly problem?: string;
  readonly passed?: PassedCall;
}

interface RefereeServer {
  readonly url: string;
  /** Cuts what is under way, and resolves when every call was told. */
  close(): Promise<void>;
}

/** Forwards in a thread of its own. Throws `KitError` if it cannot listen. */
export async function startReferee(input: WorkerInput, onPassed: (call: PassedCall) => void): Promise<RefereeServer> {
  const worker = new Worker(new URL('./forward-worker.ts', import.meta.url), { workerData: input, execArgv: [] });
  const listening = Promise.withResolvers<number>();
  worker.on('message', ({ port, problem, passed }: FromWorker) => {
    if (port !== undefined) listening.resolve(port);
    if (problem !== undefined) listening.reject(listenError(problem, { ...input, portSetting: '--port' }));
    if (passed) onPassed(passed);
  });
  worker.once('error', (error) => listening.reject(error));
  const exited = once(worker, 'exit');
  return {
    url: urlOf(input.host, await listening.promise),
    async close() {
      worker.postMessage('close');
      await exited;
    },
  };
}
