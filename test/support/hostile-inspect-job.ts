/** Stands for an inspection that its file has taken over: the file says what it does, and to whom. */
import { readFileSync } from 'node:fs';
import type { Job } from '../../src/child/in-child.ts';
import type { FileFacts, InspectInput } from '../../src/sandbox/inspect/facts.ts';
import { deeds } from './hostile-job.ts';

const job: Job<InspectInput, FileFacts> = async (_input, { files: [path = ''], workFolder }) => {
  const { deed, victim } = JSON.parse(readFileSync(path, 'utf8')) as { deed: string; victim: string };
  await deeds[deed]!(workFolder, victim);
  return { kind: 'pdf', mediaType: 'application/pdf', sha256: '0'.repeat(64), footprint: null, acquiredAt: null };
};
export default job;
