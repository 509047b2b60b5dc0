/** Writes small files until it is killed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<null, null> = (_input, { workFolder }) => {
  for (let n = 0; ; n++) writeFileSync(join(workFolder, String(n)), '');
};
export default job;
