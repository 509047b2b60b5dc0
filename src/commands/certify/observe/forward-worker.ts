/**
 * Runs in a thread: forwards calls, and reports them to the thread that judges. Every chunk causes garbage collections, which visit all
 * objects in memory. This thread therefore loads only the modules that it needs to forward.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { forwardTo } from './forward.ts';
import type { FromWorker, WorkerInput } from './referee-server.ts';

/** The kit's other servers have the same value. To import it would load their modules. */
const keptBetweenRequestsMs = 75_000;

const { upstream, host, port } = workerData as WorkerInput;
const tell = (message: FromWorker) => parentPort?.postMessage(message);
const { handler, close } = forwardTo(new URL(upstream), {
  onBegun: () => tell({ hasBegun: true }),
  onPassed: (passed) => tell({ passed }),
});
const server = createServer({ requireHostHeader: false, requestTimeout: 0 }, handler);
// The platform answers `Expect: 100-continue` itself.
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
