/** Every error row of sections 4.3 to 4.8 and 7 and of the contract's common table, by ordinary requests. faults-of-groups.test.ts has the same messages by faults. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import {
  apiKey,
  approvedOperation,
  chunkForm,
  openUpload,
  startSandbox,
  type Answer,
  type TestSandbox,
} from '../support/sandbox.ts';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly type?: string;
}
type Row = readonly [what: string, sent: Sent, status: number, message: string, wrong?: string];

const get = (path: string): Sent => ({ method: 'GET', path });
const post = (path: string, body?: unknown): Sent => ({ method: 'POST', path, body });
const form = (path: string, fields: Record<string, string>): Sent => ({
  ...post(path, new URLSearchParams(fields).toString()),
  type: 'application/x-www-form-urlencoded',
});
const file = new Uint8Array([1]);
/** `sourceType` and the other fields of a completion, which are right. */
const completion = { uploadId: 'none', key: 'none', fileSize: 1, sourceType: 'UNKNOWN' };

/** A right request of each call, but for `id`, which names what is asked for. */
const callsOf = (token: string, id: string, key = 'none') =>
  ({
    'file.upload': post('/public/file/upload', chunkForm({ file })),
    'file.generate': form('/public/file/generateUploadId', { fileName: 'a.tif' }),
    'file.chunk': post('/public/file/uploadChunk', chunkForm({ uploadId: id, key, partNumber: 1, file })),
    'file.complete': post('/public/file/completeUpload', { ...completion, uploadId: id, key }),
    'file.status': get(`/public/file/status/${id}`),
    'file.download': get(`/public/file/download/url?fileId=${id}`),
    'inference.models': get('/public/inference/models'),
    'inference.run': form('/public/inference/run', { modelId: 'vegetation-mask', fileId: id }),
    'inference.status': get(`/public/inference/status?inferenceId=${id}`),
    'inference.download': get(`/public/inference/download?inferenceJobId=${id}`),
    'stac.browse': get('/public/stac/'),
    'stac.search': post('/public/stac/search', {
      bbox: [0, 0, 1, 1],
      collections: ['c'],
      datetime: '2024-01-01T00:00:00Z/2025-01-01T00:00:00Z',
    }),
    'token.renew': post(`/public/external-app/token/${token}/renew`),
    'user.detail': get(`/public/external-app/user/${token}/detail`),
    'operation.create': post(`/public/external-app/operation/${token}`, { name: 'a' }),
    'operation.status': get(`/public/external-app/operation/${token}?operationId=${id}`),
    'upload.initiate': post(`/public/external-app/file/${token}/upload/initiate`, {
      operationId: id,
      fileName: 'a.tif',
    }),
    'upload.chunk': post(
      `/public/external-app/file/${token}/upload/chunk`,
      chunkForm({ uploadId: id, key, partNumber: 1, file }),
    ),
    'upload.complete': post(`/public/external-app/file/${token}/upload/complete`, {
      ...completion,
      uploadId: id,
      key,
    }),
  }) satisfies Record<string, Sent>;
type Call = keyof ReturnType<typeof callsOf>;
const ofApp = (call: string) => /^(token|user|operation|upload)\./.test(call);

const send = (sandbox: TestSandbox, { method, path, body, type }: Sent, key: string | null): Promise<Answer> =>
  sandbox.request(method, path, {
    body,
    headers: { ...(key === null ? {} : { 'x-api-key': key }), ...(type === undefined ? {} : { 'content-type': type }) },
  });

/** Sends each row's request and compares status, message and body; of a wrong value also its path. */
async function walk(sandbox: TestSandbox, rows: readonly Row[], key: string | null = apiKey): Promise<void> {
  for (const [what, sent, status, message, wrong] of rows) {
    const { status: seen, body, headers } = await send(sandbox, sent, key);
    expect([what, seen, body]).toMatchObject([
      what,
      status,
      {
        error: message,
        code: expect.stringMatching(/^[a-z_]+$/) as string,
        requestId: headers.get('x-request-id'),
        ...(wrong !== undefined && {
          details: expect.arrayContaining([expect.objectContaining({ path: wrong })]) as [],
        }),
      },
    ]);
    expect(headers.get('content-type'), what).toMatch(/^application\/json/);
  }
}

test('a missing or unknown key: 401, and 403 in the external-app group', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const rows = Object.entries(callsOf(token, 'none')).map(([call, sent]): Row =>
    ofApp(call) ? [call, sent, 403, 'Authentication failed'] : [call, sent, 401, 'Unauthorized Request'],
  );
  await walk(sandbox, rows, null);
  await walk(
    sandbox,
    Object.entries(callsOf(token, 'none')).map(([call, sent], i): Row => [call, sent, rows[i]![2], rows[i]![3]]),
    'unknown-key',
  );
});

test('a key without the permission: 403 Permission Denied', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const keyWith = async (...permissions: string[]) => (await sandbox.control('POST', 'keys', { permissions })).apiKey;
  const calls = Object.keys(callsOf('', '')) as Call[];
  const lacking: Record<string, readonly Call[]> = {
    [await keyWith('external_app', 'inference')]: ['file.upload', 'file.generate', 'file.chunk', 'file.complete'],
    [await keyWith('external_app', 'inference', 'files_upload')]: ['file.status', 'file.download'],
    [await keyWith('external_app', 'files_admin', 'files_upload')]: calls.filter((call) =>
      call.startsWith('inference.'),
    ),
    [await keyWith('inference', 'files_admin', 'files_upload')]: calls.filter(ofApp),
  };
  const walked: string[] = [];
  for (const [key, some] of Object.entries(lacking)) {
    const sent = callsOf(token, 'none');
    walked.push(...some);
    await walk(
      sandbox,
      some.map((call): Row => [call, sent[call], 403, 'Permission Denied']),
      key,
    );
  }
  // Any valid key may read the catalog.
  expect(walked.toSorted()).toEqual(calls.filter((call) => !call.startsWith('stac.')).toSorted());
});

test('what is not there: 404, by its name', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const [known, unknown] = [callsOf(token, 'none'), callsOf('none', 'none')];
  await walk(sandbox, [
    ...(['file.chunk', 'file.complete'] as const).map((call): Row => [call, known[call], 404, 'Upload session not found']),
    ...(['file.status', 'file.download', 'inference.run'] as const).map((call): Row => [call, known[call], 404, 'File not found']),
    ...(['inference.status', 'inference.download'] as const).map((call): Row => [call, known[call], 404, 'Inference Job not found']),
    ...Object.entries(unknown).filter(([call]) => ofApp(call)).map(([call, sent]): Row => [call, sent, 404, 'Token not found']),
    ...(['operation.status', 'upload.initiate'] as const).map((call): Row => [call, known[call], 404, 'Operation not found']),
    ...(['upload.chunk', 'upload.complete'] as const).map((call): Row => [call, known[call], 404, 'Upload session not found']),
  ]); // oxfmt-ignore
});

test('a revoked or expired token: 403, in every call of the group', async () => {
  const sandbox = await startSandbox();
  const [revoked, expired] = [await sandbox.launch(), await sandbox.launch()];
  await sandbox.control('POST', `launches/${revoked.launchId}/revoke`);
  await sandbox.advance(65 * 60_000 + 1, expired.launchId);
  for (const [{ token }, message] of [
    [revoked, 'Token revoked'],
    [expired, 'Token expired'],
  ] as const)
    await walk(
      sandbox,
      Object.entries(callsOf(token, 'none'))
        .filter(([call]) => ofApp(call))
        .map(([call, sent]): Row => [call, sent, 403, message]),
    );
});

test('a value that is missing or wrong: 400', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  const of = (path: string) => `/public/external-app${path}`;
  await walk(sandbox, [
    ['file.upload without a file', post('/public/file/upload', chunkForm({ sourceType: 'UNKNOWN' })), 400, 'Bad Request'],
    ['file.upload of a wrong type', post('/public/file/upload?sourceType=NO', chunkForm({ file })), 400, 'Bad Request'],
    ['file.generate', form('/public/file/generateUploadId', {}), 400, 'Bad Request', 'fileName'],
    ['file.chunk', post('/public/file/uploadChunk', chunkForm({ file })), 400, 'Bad Request', 'uploadId'],
    ['file.complete', post('/public/file/completeUpload', {}), 400, 'Bad Request', 'uploadId'],
    ['file.download', get('/public/file/download/url'), 400, 'Bad Request', 'fileId'],
    ['inference.run', form('/public/inference/run', {}), 400, 'Bad Request', 'modelId'],
    ['inference.status', get('/public/inference/status'), 400, 'Bad Request', 'inferenceId'],
    ['inference.download without an id', get('/public/inference/download'), 400, 'InferenceJob id cannot be null or empty'],
    ['inference.download of an empty id', get('/public/inference/download?inferenceJobId='), 400, 'InferenceJob id cannot be null or empty'],
    ['stac.search', post('/public/stac/search', {}), 400, 'Bad Request', 'bbox'],
    ['operation.create', post(of(`/operation/${token}`), {}), 400, 'Bad Request', 'name'],
    ['operation.status', get(of(`/operation/${token}`)), 400, 'Bad Request', 'operationId'],
    ['upload.initiate', post(of(`/file/${token}/upload/initiate`), {}), 400, 'Bad Request', 'operationId'],
    ['upload.chunk', post(of(`/file/${token}/upload/chunk`), chunkForm({ file })), 400, 'Bad Request', 'uploadId'],
    ['upload.complete', post(of(`/file/${token}/upload/complete`), {}), 400, 'Bad Request', 'uploadId'],
  ]); // oxfmt-ignore
});

/** Server errors of each call: the interface's message, else HTTP's. */
const onServerError: Record<Call, string> = {
  'file.upload': 'Internal Server Error',
  'file.generate': 'Failed to generate upload ID',
  'file.chunk': 'Failed to upload chunk',
  'file.complete': 'Failed to complete upload',
  'file.status': 'Internal Server Error',
  'file.download': 'Internal Server Error',
  'inference.models': 'Internal Server Error',
  'inference.run': 'Error occurred while running inference.',
  'inference.status': 'Internal Server Error',
  'inference.download': 'Error occurred while streaming the file',
  'stac.browse': 'Internal Server Error',
  'stac.search': 'Internal Server Error',
  'token.renew': 'Internal Server Error',
  'user.detail': 'Internal Server Error',
  'operation.create': 'Internal Server Error',
  'operation.status': 'Internal Server Error',
  'upload.initiate': 'Internal Server Error',
  'upload.chunk': 'Internal Server Error',
  'upload.complete': 'Failed to complete upload',
};
/** Calls that read no table: only a fault makes them fail. */
const needNoTable: readonly Call[] = ['inference.models'];

test('a database that fails: 500 with the interface’s message, and no message of the database', async () => {
  const sandbox = await startSandbox();
  const upload = await openUpload(sandbox);
  const { operationId } = await approvedOperation(sandbox, upload);
  const database = new Database(join(sandbox.dataDir, 'sandbox.db'));
  const tables = ['tokens', 'uploads', 'files', 'inference_jobs', 'collections', 'items', 'catalogs'];
  for (const table of tables) database.exec(`alter table ${table} rename to away_${table}`);
  database.close();
  const calls = Object.entries(callsOf(upload.token, operationId)) as [Call, Sent][];
  await walk(
    sandbox,
    calls
      .filter(([call]) => !needNoTable.includes(call))
      .map(([call, sent]): Row => [call, sent, 500, onServerError[call]]),
  );
});
