/** Writes a file beyond its limit, removes it, and crashes over it, as GDAL's COG driver does one time in ten. */
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<{ bytes: number }, null> = ({ bytes }, { workFolder }) => {
  const path = join(workFolder, 'pixels');
  let isCutOff = false;
  for (let written = 0; written < bytes && !isCutOff; written += 2 ** 20) {
    try {
      appendFileSync(path, Buffer.alloc(Math.min(2 ** 20, bytes - written)));
    } catch {
      isCutOff = true;
    }
  }
  rmSync(path);
  if (isCutOff) process.kill(process.pid, 'SIGSEGV');
  return Promise.resolve(null);
};
export default job;
