import { setTimeout as sleep } from 'node:timers/promises';
import { completeFileUpload, generateUploadId, limits, uploadFile } from '../../contract/index.ts';
import { jsonOf } from '../facts.ts';
import { multipart, NotObserved, type Conversation } from '../target.ts';
import {
  beginUpload,
  bodyOf,
  content,
  delivered,
  isOk,
  json,
  needed,
  nobody,
  probe,
  readable,
  refusal,
  taken,
  text,
  type Place,
} from './probe.ts';
import { launchPlace } from './launch-probes.ts';

const filePlace: Place = {
  file: 'contract/calls/complete-file-upload.ts',
  symbol: 'completeFileUpload',
  section: '4.4',
};
const settleMs = 60_000;

async function settled(at: Conversation, name: string, fileId: string): Promise<void> {
  const { calls } = at.target.profile;
  for (const giveUpAt = Date.now() + settleMs; ;) {
    const mark = at.exchanges.length;
    const answer = await at.call(name, 'getFileStatus', { fileId });
    const { status } = readable(() => calls.getFileStatus.decode(jsonOf(answer)));
    if ((status !== 'QUEUED' && status !== 'IN_PROGRESS') || Date.now() > giveUpAt)
      return at.note(`${name}, in the end`, { status: status ?? 'unknown' });
    at.exchanges.length = mark;
    await sleep(at.target.pace.pollMs);
  }
}

/** They need an approval, and leave files behind. */
export const write = [
  probe('approval', 'write', launchPlace, async (at, found) => {
    const operationId = needed(found.operationId, 'operation', at, 'create-operation/created');
    await at.target.approve(operationId, await at.token());
    const mark = at.exchanges.length;
    const answer = await at.call('approval/approved', 'getOperation', { token: await at.token(), operationId });
    const { status } = readable(() => at.target.profile.calls.getOperation.decode(jsonOf(answer)));
    // The person's decision is not a difference of the platform.
    if (status === 'REJECTED' || status === 'EXPIRED') {
      at.exchanges.length = mark;
      throw new NotObserved(`the operation is ${status}: nothing more is written`);
    }
    if (status !== undefined) at.note('approval/state', { status });
    if (status !== 'APPROVED')
      throw new NotObserved(`the operation is ${status ?? 'in no state that the profile reads'}`);
    found.isApproved = true;
  }),
  probe('initiate-upload', 'write', launchPlace, async (at, found) => {
    if (!found.isApproved) throw new NotObserved('no operation is approved');
    const begun = await beginUpload(at, 'initiate-upload/begun', {
      operationId: needed(found.operationId, 'operation', at, 'create-operation/created'),
      fileName: 'drift.geojson',
      sourceType: 'POINT' as const,
    });
    if (begun) found.upload = begun;
  }),
  probe('upload-chunk', 'write', launchPlace, async (at, found) => {
    const token = await at.token();
    const chunk = {
      token,
      ...needed(found.upload, 'upload', at, 'initiate-upload/begun'),
      partNumber: limits.firstPartNumber,
      partCount: 1,
      content: content(delivered),
    };
    const first = await at.call('upload-chunk/first', 'uploadChunk', chunk);
    if (isOk(first)) at.note('upload-chunk/first-part', { 'the first part': String(limits.firstPartNumber) });
    else {
      // The platform may count from 0.
      const before = { ...chunk, partNumber: limits.firstPartNumber - 1 };
      const answer = await at.call('upload-chunk/counted from 0', 'uploadChunk', before, refusal);
      at.exchanges.pop();
      if (isOk(answer)) at.note('upload-chunk/first-part', { 'the first part': '0' });
    }
    taken(at, 'upload-chunk/first');
    await at.call('upload-chunk/the same again', 'uploadChunk', chunk);
  }),
  probe('complete-upload', 'write', launchPlace, async (at, found) => {
    taken(at, 'upload-chunk/first');
    const token = await at.token();
    const completion = {
      ...needed(found.upload, 'upload', at, 'initiate-upload/begun'),
      fileSize: delivered.length,
      sourceType: 'POINT' as const,
      partCount: 1,
    };
    const answer = await at.call('complete-upload/completed', 'completeUpload', { token, completion });
    const { fileId } = readable(() => at.target.profile.calls.completeUpload.decode(jsonOf(answer)));
    const again = await at.call('complete-upload/again', 'completeUpload', { token, completion });
    const second = readable(() => at.target.profile.calls.completeUpload.decode(jsonOf(again)));
    if (isOk(answer) && isOk(again))
      at.note('complete-upload/the same file', { again: second.fileId === fileId ? 'the same file' : 'another file' });
    if (fileId !== undefined) found.deliveredId = fileId;
  }),
  probe('delivered-file', 'write', filePlace, async (at, found) => {
    const fileId = needed(found.deliveredId, 'delivered file', at, 'complete-upload/completed');
    await settled(at, 'delivered-file/status', fileId);
    const link = await at.call('delivered-file/link', 'getDownloadUrl', { fileId });
    const url = readable(() => ({
      at: at.target.profile.calls.getDownloadUrl.decode(jsonOf(link) ?? link.body.toString('utf8')),
    })).at;
    if (url === undefined || !URL.canParse(url)) throw new NotObserved('there is no link to the file');
    const whole = await at.send('delivered-file/whole', { method: 'GET', path: url, authenticated: false });
    await at.send('delivered-file/a part', {
      method: 'GET',
      path: url,
      headers: { range: 'bytes=0-9' },
      authenticated: false,
    });
    at.note('delivered-file/bytes', { bytes: whole.body.equals(delivered) ? 'as they were sent' : 'others' });
  }),
  probe(
    'second-upload',
    'write',
    { file: 'contract/profile/wire-profile.ts', symbol: 'severalOutputs', section: '4.8' },
    async (at, found) => {
      if (!found.isApproved) throw new NotObserved('no operation is approved');
      const upload = {
        operationId: needed(found.operationId, 'operation', at, 'create-operation/created'),
        fileName: 'drift-2.geojson',
      };
      const begun = await beginUpload(at, 'second-upload/begun', upload);
      if (begun) found.secondUpload = begun;
    },
  ),
  // On an upload of their own: a platform may clean up what it refuses.
  probe('chunk-refusals', 'write', launchPlace, async (at, found) => {
    const token = await at.token();
    const upload = needed(found.secondUpload, 'second upload', at, 'second-upload/begun');
    const chunk = (partNumber: number) => ({
      ...{ token, ...upload, partNumber, partCount: 1 },
      content: content(delivered),
    });
    await at.call('chunk-refusals/first', 'uploadChunk', chunk(1));
    // The other refusals mean something only if the platform accepts a right chunk.
    taken(at, 'chunk-refusals/first');
    await at.call('chunk-refusals/unknown upload', 'uploadChunk', { ...chunk(1), uploadId: nobody }, refusal);
    await at.call('chunk-refusals/out of order', 'uploadChunk', chunk(3), refusal);
    await at.call('chunk-refusals/most-parts', 'uploadChunk', chunk(limits.maxPartNumber + 1), refusal);
    const otherBytes = { ...chunk(1), content: content(Buffer.from('drift')) };
    await at.call('chunk-refusals/other bytes', 'uploadChunk', otherBytes, refusal);
    const completion = { ...upload, fileSize: 1, sourceType: 'POINT' as const, partCount: 1 };
    await at.call('chunk-refusals/another size', 'completeUpload', { token, completion }, refusal);
  }),
  probe(
    'direct-upload',
    'write',
    { file: 'contract/calls/upload-file.ts', symbol: 'uploadFile', section: '4.3' },
    async (at, found) => {
      if (!found.isApproved) throw new NotObserved('no operation is approved');
      const file = { field: 'file', fileName: 'drift-direct.geojson', content: delivered };
      const answer = await at.send('direct-upload/sent', {
        method: 'POST',
        path: uploadFile.path,
        ...multipart({ sourceType: 'POINT' }, file),
      });
      const fileId = text(bodyOf(answer)['fileId']);
      if (fileId !== undefined) found.fileId = fileId;
      await at.send('direct-upload/without a file', {
        method: 'POST',
        path: uploadFile.path,
        ...multipart({ sourceType: 'POINT' }, null),
      });
    },
  ),
  probe('file-upload', 'write', filePlace, async (at, found) => {
    if (!found.isApproved) throw new NotObserved('no operation is approved');
    const begun = await at.call('file-upload/begun', 'generateUploadId', { fileName: 'drift-chunked.geojson' });
    const { uploadId, key } = readable(() => at.target.profile.calls.generateUploadId.decode(jsonOf(begun)));
    const from = [at, 'file-upload/begun'] as const;
    const upload = { uploadId: needed(uploadId, 'upload', ...from), key: needed(key, 'key', ...from) };
    await at.call('file-upload/chunk', 'uploadFileChunk', {
      ...upload,
      partNumber: limits.firstPartNumber,
      content: content(delivered),
    });
    const completion = {
      ...upload,
      fileSize: delivered.length,
      sourceType: 'POINT' as const,
      geometry: JSON.stringify({ type: 'Point', coordinates: [10, 50] }),
      layerProperties: { drift: true },
      vectorMappingProperties: { of: 'of' },
    };
    const answer = await at.call('file-upload/completed', 'completeFileUpload', { completion });
    const { fileId } = readable(() => at.target.profile.calls.completeFileUpload.decode(jsonOf(answer)));
    await settled(at, 'file-upload/source-types', needed(fileId, 'file', at, 'file-upload/completed'));
  }),
  probe('file-refusals', 'write', filePlace, async (at, found) => {
    if (!found.isApproved) throw new NotObserved('no operation is approved');
    const named = (name: string, fileName: string) =>
      at.send(name, {
        method: 'POST',
        path: generateUploadId.path,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ fileName }).toString(),
      });
    await named('file-refusals/file-name', '../drift');
    await named('file-refusals/file-name-size', `${'x'.repeat(limits.fileNameBytes)}.tif`);
    const completing = (name: string, more: object) =>
      at.send(name, {
        method: 'POST',
        path: completeFileUpload.path,
        ...json({ uploadId: nobody, key: nobody, fileSize: 1, sourceType: 'POINT', ...more }),
      });
    await completing('file-refusals/unknown upload', {});
    await completing('file-refusals/file-properties-size', {
      layerProperties: 'x'.repeat(limits.filePropertiesBytes + 1),
    });
    const points = Array.from({ length: limits.footprintPositions + 1 }, (_, i) => `${i / 100} 1`).join(', ');
    await completing('file-refusals/footprint-positions', { geometry: `LINESTRING (${points})` });
  }),
  probe(
    'run-inference',
    'write',
    { file: 'contract/inference/inference.ts', symbol: 'runInference', section: '4.7' },
    async (at, found) => {
      const fileId = needed(found.fileId, 'file', at, 'direct-upload/sent');
      const { calls } = at.target.profile;
      const models = await at.call('run-inference/models', 'listModels', {});
      at.exchanges.pop();
      const [model] = Object.values(readable(() => calls.listModels.decode(jsonOf(models))));
      const answer = await at.call('run-inference/started', 'runInference', {
        modelId: needed(model?.id, 'model', at, 'list-models/all'),
        fileId,
      });
      const { id } = readable(() => calls.runInference.decode(jsonOf(answer)));
      await at.call('run-inference/status', 'getInferenceStatus', {
        inferenceId: needed(id, 'job', at, 'run-inference/started'),
      });
      await at.call('run-inference/unknown file', 'runInference', { modelId: nobody, fileId: nobody }, refusal);
    },
  ),
];
