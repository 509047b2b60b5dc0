import { setTimeout as sleep } from 'node:timers/promises';
import { apiKey, chunkForm, type Answer, type TestSandbox } from './sandbox.ts';

export const key = { 'x-api-key': apiKey };

/** Upload type 1 (spec 4.3) with the test's key. */
export function uploadDirectly(
  sandbox: TestSandbox,
  bytes: Uint8Array,
  fileName: string,
  sourceType?: string,
): Promise<Answer> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), fileName);
  return sandbox.request('POST', `/public/file/upload${sourceType ? `?sourceType=${sourceType}` : ''}`, {
    body: form,
    headers: key,
  });
}

export async function generateUpload(
  sandbox: TestSandbox,
  fileName = 'big.bin',
): Promise<{ uploadId: string; key: string }> {
  return (
    await sandbox.request('POST', `/public/file/generateUploadId?fileName=${encodeURIComponent(fileName)}`, {
      headers: key,
    })
  ).body;
}

export function sendFileChunk(
  sandbox: TestSandbox,
  upload: { uploadId: string; key: string },
  partNumber: number,
  file: Uint8Array,
): Promise<Answer> {
  return sandbox.request('POST', '/public/file/uploadChunk', {
    body: chunkForm({ uploadId: upload.uploadId, key: upload.key, partNumber, file }),
    headers: key,
  });
}

export function completeFile(
  sandbox: TestSandbox,
  upload: { uploadId: string; key: string },
  fileSize: number,
  more: object = {},
): Promise<Answer> {
  return sandbox.request('POST', '/public/file/completeUpload', {
    body: { uploadId: upload.uploadId, key: upload.key, fileSize, sourceType: 'UNKNOWN', ...more },
    headers: key,
  });
}

/** Uploads and waits until it is COMPLETED or FAILED. */
export async function processed(
  sandbox: TestSandbox,
  bytes: Uint8Array,
  fileName: string,
  sourceType: string,
): Promise<{ fileId: string; status: string }> {
  const { fileId } = (await uploadDirectly(sandbox, bytes, fileName, sourceType)).body;
  return { fileId, status: await finalStatus(sandbox, fileId) };
}

export async function finalStatus(sandbox: TestSandbox, fileId: string): Promise<string> {
  for (;;) {
    const { body } = await sandbox.request('GET', `/public/file/status/${fileId}`, { headers: key });
    if (!['QUEUED', 'IN_PROGRESS'].includes(body.status)) return body.status;
    await sleep(50);
  }
}

export async function downloaded(sandbox: TestSandbox, fileId: string): Promise<Buffer> {
  const url = (await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key })).text;
  return Buffer.from(await (await fetch(url)).arrayBuffer());
}
