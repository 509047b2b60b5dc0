/** A platform with another wire: other paths, other field names, chunks as raw bodies, other errors; and the profile for it. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';
import { assumedProfile, operationStatus, type WireProfile } from '../../src/contract/index.ts';
import { cleanUpLater } from './cleanup.ts';

const session = (token: string) => `/v2/sessions/${encodeURIComponent(token)}`;

export const otherProfile: WireProfile = {
  name: 'other',
  authenticate: (apiKey) => ({ Authorization: `Key ${apiKey}` }),
  launchTokenField: 'session',
  pages: { approvals: null, item: null },
  calls: {
    ...assumedProfile.calls,
    renewToken: {
      endpoint: 'token.renew',
      encode: ({ token }) => ({ method: 'POST', path: `${session(token)}/prolong` }),
      decode: (body) => ({ token: z.object({ session: z.string() }).parse(body).session }),
    },
    userDetail: {
      endpoint: 'user.detail',
      encode: ({ token }) => ({ method: 'GET', path: `${session(token)}/whoami` }),
      decode: (body) => {
        const { user_name, mail } = z.object({ user_name: z.string(), mail: z.string() }).parse(body);
        return { id: mail, name: user_name, email: mail };
      },
    },
    createOperation: {
      endpoint: 'operation.create',
      encode: ({ token, idempotencyKey, operation }) => ({
        method: 'POST',
        path: `${session(token)}/jobs`,
        body: { kind: 'json', value: { title: operation.name, args: operation.parameters, clientRef: idempotencyKey } },
      }),
      decode: (body) => ({ operationId: z.object({ jobRef: z.string() }).parse(body).jobRef }),
    },
    getOperation: {
      endpoint: 'operation.status',
      encode: ({ token, operationId }) => ({
        method: 'GET',
        path: `${session(token)}/jobs`,
        query: { ref: operationId },
      }),
      decode: (body) => {
        const words = { waiting: 'REQUESTED', granted: 'APPROVED', denied: 'REJECTED', lapsed: 'EXPIRED' } as const;
        const { verdict } = z.object({ verdict: z.enum(['waiting', 'granted', 'denied', 'lapsed']) }).parse(body);
        return { status: operationStatus.parse(words[verdict]) };
      },
    },
    initiateUpload: {
      endpoint: 'upload.initiate',
      encode: ({ token, upload }) => ({
        method: 'POST',
        path: `${session(token)}/uploads`,
        body: { kind: 'json', value: { job: upload.operationId, name: upload.fileName } },
      }),
      decode: (body) => {
        const { upload_id, object_key } = z.object({ upload_id: z.string(), object_key: z.string() }).parse(body);
        return { uploadId: upload_id, key: object_key };
      },
    },
    uploadChunk: {
      endpoint: 'upload.chunk',
      encode: ({ token, uploadId, key, partNumber, content }) => ({
        method: 'POST',
        path: `${session(token)}/uploads/${uploadId}/parts/${partNumber}`,
        headers: { 'x-object-key': key },
        body: { kind: 'raw', mediaType: 'application/octet-stream', content },
      }),
      decode: () => ({}),
    },
    completeUpload: {
      endpoint: 'upload.complete',
      encode: ({ token, completion }) => ({
        method: 'POST',
        path: `${session(token)}/uploads/${completion.uploadId}/finish`,
        body: { kind: 'json', value: { object_key: completion.key, bytes: completion.fileSize } },
      }),
      decode: (body) => ({ fileId: z.object({ file: z.object({ ref: z.string() }) }).parse(body).file.ref }),
    },
    getFileStatus: {
      endpoint: 'file.status',
      encode: ({ fileId }) => ({ method: 'GET', path: `/v2/files/${fileId}` }),
      decode: () => ({ status: 'COMPLETED' }),
    },
    getDownloadUrl: {
      endpoint: 'file.download-url',
      encode: ({ fileId }) => ({ method: 'GET', path: `/v2/files/${fileId}/link` }),
      decode: String,
    },
  },
  decodeError(status, body) {
    const fault = z.object({ fault: z.string() }).safeParse(body);
    const code = fault.success && fault.data.fault === 'session-over' ? 'token_expired' : null;
    return {
      code,
      message: fault.success ? fault.data.fault : `status ${status}`,
      requestId: null,
      details: [],
      expectedPart: null,
    };
  },
};

export interface OtherPlatform {
  readonly url: string;
  readonly token: string;
  /** What was called, in order. */
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
    if (req.headers.authorization !== `Key ${apiKey}`) return void answer(res, 403, { fault: 'who are you' });
    if (what === 'prolong') return void answer(res, 200, { session: live });
    if (decodeURIComponent(token) !== live) return void answer(res, 403, { fault: 'session-over' });
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
    answer(res, 404, { fault: 'no such thing' });
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  platform.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return platform;
}
