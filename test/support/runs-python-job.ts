import { execFileSync } from 'node:child_process';
import type { Job } from '../../src/child/in-child.ts';

/** Runs a script of Python, and answers what it prints. */
const job: Job<string, string> = async (script) =>
  execFileSync('/usr/bin/python3', ['-c', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
export default job;
