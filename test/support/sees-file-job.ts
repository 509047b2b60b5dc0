/** The text of the file that it is lent. */
import { readFile } from 'node:fs/promises';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<null, string> = (_input, { files: [path = ''] }) => readFile(path, 'utf8');
export default job;
