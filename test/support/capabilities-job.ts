/** A job that reads the capabilities of its process, as the kernel writes them: one bit each, in hex. */
import { readFileSync } from 'node:fs';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<null, Record<string, string>> = () =>
  Object.fromEntries(
    [...readFileSync('/proc/self/status', 'utf8').matchAll(/^(Cap\w+|NoNewPrivs):\s*(\S+)$/gm)].map(
      ([, name = '', value = '']) => [name, value],
    ),
  );
export default job;
