import type { Job } from '../child/in-child.ts';
import { readMetadata, type Metadata } from './metadata.ts';

/** The metadata of the one file that it is lent. */
const job: Job<null, Metadata> = (_input, { files: [path = ''] }) => readMetadata(path);
export default job;
