/** Runs in a thread: measures how long this machine takes for a fixed piece of work, in milliseconds of wall time. */
import { parentPort } from 'node:worker_threads';

/** About a millisecond on a machine of 2020. */
const unit = 400_000;
/** Units of one burst. A scheduler interrupts a longer piece of work, and a single unit hardly ever. */
const burst = 60;

function workOfUnit(): number {
  let sum = 0;
  for (let i = 0; i < unit; i++) sum = (sum * 31 + i) | 0;
  return sum;
}

parentPort?.on('message', () => {
  const took: number[] = [];
  let sum = 0;
  for (let i = 0; i < burst; i++) {
    const began = performance.now();
    sum += workOfUnit();
    took.push(performance.now() - began);
  }
  parentPort?.postMessage({ meanMs: took.reduce((all, ms) => all + ms, 0) / burst, leastMs: Math.min(...took), sum });
});
