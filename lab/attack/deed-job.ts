/** A job that a file has taken over: does one deed, and answers whether it worked. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Job } from '../../src/child/in-child.ts';

const script = readFileSync(fileURLToPath(new URL('./deeds.py', import.meta.url)), 'utf8');

/** Answers the text that the deed printed. Not confined, it runs with the machine's own Python. */
const job: Job<string, string> = (deed, { files, workFolder }) =>
  execFileSync('/usr/bin/python3', ['-c', script, deed, ...files], { encoding: 'utf8', cwd: workFolder }).trim();
export default job;
