/** The first job of a server: shows that a child process starts, and what it starts with. Opens no file. */
import { readFileSync } from 'node:fs';
import gdal from 'gdal-async';
import { FileDigests } from './file-digests.ts';
import type { Job } from './protocol.ts';

export interface ProbeOutput {
  /** Every driver that this GDAL has. */
  readonly drivers: readonly string[];
  /** Address space that a child asks for before it does anything; most of it is never touched. 0 where the system does not tell. */
  readonly dataBytes: number;
}

const job: Job<null, ProbeOutput> = async () => {
  // A step needs the most address space if it has the thread for digests.
  const digests = new FileDigests();
  await digests.ofLarge([]);
  const output = { drivers: gdal.drivers.getNames(), dataBytes: dataBytes() };
  await digests.close();
  return output;
};
export default job;

function dataBytes(): number {
  try {
    return Number(/^VmData:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
