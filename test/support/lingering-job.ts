/** Lives long enough for its limits to be looked at. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<null, string> = async () => {
  await sleep(900);
  return 'done';
};
export default job;
