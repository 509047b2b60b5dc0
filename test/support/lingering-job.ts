/** Lives long enough for its limits to be looked at. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '../../src/raster/child/protocol.ts';

const job: Job<null, string> = async () => {
  await sleep(900);
  return 'done';
};
export default job;
