import { setTimeout as sleep } from 'node:timers/promises';

/** Waits. Rejects with the signal's own reason where it is aborted meanwhile (Node's timer rejects with an error of its own). */
export async function abortableSleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
