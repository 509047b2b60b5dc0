/** An inspection that says how many files its process has inspected. */
import type { Job } from '../../src/child/in-child.ts';

let inspected = 0;

const job: Job<unknown, object> = () => ({
  ...{ kind: 'pdf', mediaType: 'application/pdf', sha256: '0'.repeat(64), footprint: null, acquiredAt: null },
  inspected: (inspected += 1),
});
export default job;
