/** A job that names its process: a random text that it makes once. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '../../src/child/in-child.ts';

const process = randomUUID();

const job: Job<{ readonly waitMs: number }, string> = async ({ waitMs }) => {
  await sleep(waitMs);
  return process;
};
export default job;
