/**
 * Runs in a thread: forwards, and tells what passed. Each collection of garbage walks over all that is in memory, and every chunk
 * leads to some, so the thread has in memory only what forwarding needs. The thread that judges has the rest.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { forwardTo } from './forward.ts';
import type { FromWorker, WorkerInput } from './referee-server.ts';

/** The same as of the kit's other servers. */
const keptBetweenRequestsMs = 75_000;

const { upstream, host, port } = workerData as WorkerInput;
const tell = (message: FromWorker) => parentPort?.postMessage(message);
const { handler, close } = forwardTo(new URL(upstream), {
  onBegun: () => tell({ hasBegun: true }),
  onPassed: (passed) => tell({ passed }),
});
const server = createServer({ requireHostHeader: false, requestTimeout: 0 }, handler);
// A request that expects 100 gets the one of the platform.
server.on('checkContinue', handler);
server.keepAliveTimeout = keptBetweenRequestsMs;
server.once('error', (error: NodeJS.ErrnoException) => tell({ problem: error.code ?? error.message }));
server.listen(port, host, () => tell({ port: (server.address() as AddressInfo).port }));
parentPort?.once('message', () => {
  close();
  // Calls under way are cut, and reported.
  server.close(() => parentPort?.close());
  server.closeAllConnections();
});
