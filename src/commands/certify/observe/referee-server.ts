import { Worker } from 'node:worker_threads';
import { listenError, urlOf } from '../../../server/index.ts';
import type { PassedCall } from './forward.ts';

/** Settings of the thread that forwards. */
export interface WorkerInput {
  readonly upstream: string;
  readonly host: string;
  readonly port: number;
}

/** A message from the thread that forwards. */
export interface FromWorker {
  /** The port that was taken. */
  readonly port?: number;
  /** Code of the system's error, if it cannot listen. */
  readonly problem?: string;
  readonly hasBegun?: true;
  readonly passed?: PassedCall;
}

interface RefereeServer {
  readonly url: string;
  /** Cuts the calls under way, and resolves when every call has been reported. */
  close(): Promise<void>;
}

interface RefereeListeners {
  readonly onBegun: () => void;
  readonly onPassed: (call: PassedCall) => void;
  /** Called if the thread has failed, and forwards nothing more. */
  readonly onFailed: (error: Error) => void;
}

/** Starts a thread that forwards. Throws `KitError` if it cannot listen. */
export async function startReferee(
  input: WorkerInput,
  { onBegun, onPassed, onFailed }: RefereeListeners,
): Promise<RefereeServer> {
  const worker = new Worker(new URL('./forward-worker.ts', import.meta.url), { workerData: input, execArgv: [] });
  const listening = Promise.withResolvers<number>();
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  worker.on('message', ({ port, problem, hasBegun, passed }: FromWorker) => {
    if (port !== undefined) listening.resolve(port);
    if (problem !== undefined) listening.reject(listenError(problem, { ...input, portSetting: '--port' }));
    if (hasBegun) onBegun();
    if (passed) onPassed(passed);
  });
  worker.on('error', (error: Error) => {
    listening.reject(error);
    onFailed(error);
  });
  const port = await listening.promise.catch(async (error: unknown) => {
    await worker.terminate();
    throw error;
  });
  return {
    url: urlOf(input.host, port),
    async close() {
      worker.postMessage('close');
      await exited;
    },
  };
}
