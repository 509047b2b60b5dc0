/** `npm run bench`: the performance table, each figure beside a peer of the same run. `-- --sizes 1024,4096` sets the uploads' MiB. */
import { mkdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { benchUpload, type UploadResult } from './upload.ts';

const { values } = parseArgs({
  options: { sizes: { type: 'string', default: '1024,4096' }, folder: { type: 'string', default: 'data/bench' } },
});
await mkdir(values.folder, { recursive: true });

console.log(
  'Upload through the app into the sandbox, until the file can be downloaded; cp of the same bytes on the same disk.\n',
);
console.log('|   MiB | upload MiB/s | cp MiB/s | upload/cp time | complete ms | app peak MiB | sandbox peak MiB |');
console.log('|------:|-------------:|---------:|---------------:|------------:|-------------:|-----------------:|');
const results: UploadResult[] = [];
for (const size of values.sizes.split(',').map(Number)) {
  const result = await benchUpload(size, values.folder);
  results.push(result);
  const cells = [
    String(result.mebibytes).padStart(5),
    (result.mebibytes / result.uploadSeconds).toFixed(0).padStart(12),
    (result.mebibytes / result.cpSeconds).toFixed(0).padStart(8),
    (result.uploadSeconds / result.cpSeconds).toFixed(2).padStart(14),
    result.completeMs.toFixed(0).padStart(11),
    result.appPeakMiB.toFixed(0).padStart(12),
    result.sandboxPeakMiB.toFixed(0).padStart(16),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
const [first, last] = [results[0], results.at(-1)];
if (first && last && first !== last) {
  const ratio = (of: (result: UploadResult) => number) => (of(last) / of(first)).toFixed(2);
  console.log(
    `\npeak at ${last.mebibytes} MiB over peak at ${first.mebibytes} MiB: app ${ratio((r) => r.appPeakMiB)}, sandbox ${ratio((r) => r.sandboxPeakMiB)}`,
  );
}
