/** A platform with another wire: other paths, other field names, chunks as raw bodies, other errors; and the profile for it. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { wireProfile } from '../../src/contract/index.ts';
import { cleanUpLater } from './cleanup.ts';

const session = '/v2/sessions/:token';

export const otherProfile = wireProfile({
  name: 'other',
  apiKey: { header: 'Authorization', prefix: 'Key ' },
  launchTokenField: 'session',
  pages: { approvals: null, item: null },
  limits: { chunkBytes: 6_000 },
  calls: {
    renewToken: { path: `${session}/prolong`, response: { token: 'session' } },
    userDetail: { path: `${session}/whoami`, response: { id: 'mail', name: 'user_name', email: 'mail' } },
    createOperation: {
      path: `${session}/jobs`,
      request: { name: 'title', parameters: 'args', idempotencyKey: { in: 'body', name: 'clientRef' } },
      response: { operationId: 'jobRef' },
    },
    getOperation: {
      path: `${session}/jobs`,
      request: { operationId: 'ref' },
      response: {
        status: {
          name: 'verdict',
          values: { REQUESTED: 'waiting', APPROVED: 'granted', REJECTED: 'denied', EXPIRED: 'lapsed' },
        },
      },
    },
    initiateUpload: {
      path: `${session}/uploads`,
      request: { operationId: 'job', fileName: 'name' },
      response: { uploadId: 'upload_id', key: 'object_key' },
    },
    uploadChunk: {
      method: 'PUT',
      path: `${session}/uploads/:uploadId/parts/:partNumber`,
      body: 'raw',
      request: { key: { in: 'header', name: 'x-object-key' } },
    },
    completeUpload: {
      path: `${session}/uploads/:uploadId/finish`,
      request: { key: 'object_key', fileSize: 'bytes' },
      response: { fileId: 'file.ref' },
    },
    getFileStatus: { path: '/v2/files/:id' },
    getDownloadUrl: { path: '/v2/files/:fileId/link', response: { text: 'link.href' } },
  },
  errors: { fields: { error: 'fault.says', code: 'fault.kind' }, codes: { token_expired: 'session-over' } },
});

export interface OtherPlatform {
  readonly url: string;
  readonly token: string;
  /** Calls so far, in order. */
  readonly calls: string[];
  /** The finished files. */
  readonly files: Map<string, Buffer>;
  verdict: 'waiting' | 'granted' | 'denied';
  /** Ends the session, so that the app has to renew it. */
  endSession(): void;
}

export async function startOtherPlatform(apiKey: string): Promise<OtherPlatform> {
  let live = 'first-session';
  const parts = new Map<string, Buffer[]>();
  const platform: OtherPlatform & { url: string } = {
    url: '',
    token: live,
    calls: [],
    files: new Map(),
    verdict: 'waiting',
    endSession: () => (live = 'second-session'),
  };
  const answer = (res: ServerResponse, status: number, body: object) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

  const server = createServer((req, res) => void handle(req, res));
  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const bytes: Buffer[] = [];
    for await (const chunk of req) bytes.push(chunk as Buffer);
    const body = Buffer.concat(bytes);
    const json = () => JSON.parse(body.toString()) as Record<string, unknown>;
    const [, token = '', what = ''] = /^\/v2\/sessions\/([^/]+)\/([^?]*)/.exec(req.url ?? '') ?? [];
    platform.calls.push(`${req.method} ${what.replace(/uploads\/[^/]+/, 'uploads/U')}`);
    if (req.headers.authorization !== `Key ${apiKey}`) return void answer(res, 403, { fault: { says: 'who are you' } });
    if (what === 'prolong') return void answer(res, 200, { session: live });
    if (decodeURIComponent(token) !== live)
      return void answer(res, 403, { fault: { says: 'over', kind: 'session-over' } });
    if (what === 'whoami') return void answer(res, 200, { user_name: 'Chidi', mail: 'c@example.org' });
    if (what === 'jobs')
      return void answer(res, 200, req.method === 'POST' ? { jobRef: 'job-7' } : { verdict: platform.verdict });
    if (what === 'uploads') {
      const id = randomUUID();
      parts.set(id, []);
      return void answer(res, 201, { upload_id: id, object_key: `k/${id}` });
    }
    const [, id = '', action = ''] = /^uploads\/([^/]+)\/(.*)$/.exec(what) ?? [];
    if (action.startsWith('parts/') && req.headers['x-object-key'] === `k/${id}`) {
      parts.get(id)?.push(body);
      return void res.writeHead(204).end();
    }
    const whole = Buffer.concat(parts.get(id) ?? []);
    if (action === 'finish' && json()['bytes'] === whole.length) {
      platform.files.set(id, whole);
      return void answer(res, 200, { file: { ref: id } });
    }
    answer(res, 404, { fault: { says: 'no such thing' } });
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  platform.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return platform;
}
