import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/** A loop for each core, at least two, until the function that it answers is called. */
export function startBusyLoops(): () => void {
  const loops = Array.from(
    { length: Math.max(2, availableParallelism()) },
    () => new Worker('for (;;);', { eval: true }),
  );
  return () => loops.forEach((loop) => void loop.terminate());
}
