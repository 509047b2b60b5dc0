/** Takes most of its disk for a while, and gives it back before it answers. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<{ bytes: number; forMs: number }, null> = async ({ bytes, forMs }, { workFolder }) => {
  const path = join(workFolder, 'pixels');
  await writeFile(path, Buffer.alloc(bytes));
  await sleep(forMs);
  await rm(path);
  return null;
};
export default job;
