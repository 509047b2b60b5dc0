/** Stands for GDAL when a file is too much for it: what happens is decided by the file's name. */
import type { Job } from '../../src/child/in-child.ts';
import type { FileFacts, InspectInput } from '../../src/sandbox/inspect/facts.ts';

const job: Job<InspectInput, FileFacts> = (_input, { files: [path = ''] }) => {
  if (path.endsWith('crash')) process.kill(process.pid, 'SIGSEGV');
  for (; path.endsWith('hang'););
  return Promise.resolve({
    kind: 'raster',
    mediaType: 'image/tiff',
    sha256: '0'.repeat(64),
    footprint: null,
    acquiredAt: null,
  });
};
export default job;
