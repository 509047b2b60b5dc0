import gdal from 'gdal-async';
import type { Job } from '../../src/child/in-child.ts';

/** Loads GDAL and does nothing, so that the time is that of a start. */
const job: Job<null, string> = () => gdal.version;
export default job;
