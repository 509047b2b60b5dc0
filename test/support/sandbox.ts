import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { pino } from 'pino';
import { serve } from '../../src/server/index.ts';
import { readSandboxConfig } from '../../src/sandbox/config.ts';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/create-sandbox.ts';
import { makeFolder } from './folders.ts';
import { testConfinement } from './confinement.ts';
import { cleanUpLater } from './cleanup.ts';
import { watchAnswers } from './openapi.ts';

export const apiKey = 'test-api-key-0123456789';
export const adminKey = 'a-test-admin-key-of-32-characters!!';

/** Every field that an answer of the sandbox can have. A test names those that its answer should have. */
export interface AnswerBody {
  readonly reason?: string;
  readonly error: string;
  readonly code: string;
  readonly requestId: string;
  readonly details: { path: string; message: string }[];
  readonly id: string;
  readonly token: string;
  readonly apiKey: string;
  readonly expiresAt: string;
  readonly createdAt: string | number;
  readonly now: string;
  readonly launchId: string;
  readonly operationId: string;
  readonly status: string;
  readonly uploadId: string;
  readonly key: string;
  readonly partNumber: number;
  readonly size: number;
  readonly expected: number;
  readonly received: number;
  readonly fileId: string;
  readonly originalName: string;
  readonly apps: { id: string }[];
  readonly users: { id: string }[];
  readonly keys: { id: string }[];
  readonly operations: { operationId: string; status: string; name: string }[];
  readonly uploads: {
    uploadId: string;
    fileId: string | null;
    receivedBytes: number;
    parts: { partNumber: number; size: number }[];
  }[];
  readonly faults: { id: string; fired: number; times: number }[];
  readonly calls: TracedCall[];
  /** A verdict's. */
  readonly result: string;
  readonly rules: {
    rule: string;
    clause: string;
    result: string;
    violations: { seen: string; expected: string; advice: string; calls: { id: number; endpoint: string }[] }[];
    violationCount: number;
  }[];
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed where the answer is JSON, else the text. */
  readonly body: AnswerBody;
}

export interface TestSandbox {
  readonly url: string;
  readonly dataDir: string;
  /** Null for one that runs elsewhere. */
  readonly handler: RequestListener | null;
  /** Any request. A plain object as body goes as JSON. */
  request(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string> },
  ): Promise<Answer>;
  /** A request with the API key, under the external-app base path. */
  app(method: string, path: string, options?: { body?: unknown; headers?: Record<string, string> }): Promise<Answer>;
  /** A call of the control API; throws where it is refused. */
  control(method: string, path: string, body?: unknown): Promise<AnswerBody>;
  launch(options?: {
    renewPolicy?: 'extend' | 'rotate' | undefined;
    appId?: string | undefined;
    userId?: string | undefined;
  }): Promise<{ launchId: string; token: string; launchUrl: string; expiresAt: string }>;
  advance(advanceMs: number, launchId?: string): Promise<void>;
  trace(launchId: string): Promise<TracedCall[]>;
  close(): Promise<void>;
}

export interface TracedCall {
  readonly at: string;
  readonly endpoint: string;
  readonly method: string;
  readonly status: number | null;
  readonly delivered: boolean;
  readonly requestBytes: number;
  readonly durationMs: number;
  readonly detail: Record<string, unknown>;
}

export type StartOptions = Partial<Omit<SandboxOptions, 'config' | 'log'>> & {
  dataDir?: string;
  env?: Record<string, string>;
  seed?: 'demo' | 'none';
  prepare?: (sandbox: Sandbox, dataDir: string) => Promise<void>;
  /** Its answers are broken on purpose: nobody holds them against the OpenAPI document. */
  isBroken?: boolean;
};

/** A sandbox on a free port, closed and its folder removed when the test ends. */
export async function startSandbox(options: StartOptions = {}): Promise<TestSandbox> {
  const { dataDir = await makeFolder(), env = {}, seed = 'none', prepare, isBroken = false, ...rest } = options;
  const config = readSandboxConfig(
    { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'silent', ...env },
    { port: '0', data: dataDir, seed },
  );
  const sandbox = await createSandbox({
    config,
    log: pino({ level: config.logLevel }),
    confinement: await testConfinement(),
    ...rest,
  });
  await prepare?.(sandbox, dataDir).catch(async (error: unknown) => {
    await sandbox.close();
    throw error;
  });
  // The OpenAPI document does not describe another HTTP format.
  const watched =
    rest.profile || isBroken ? { handler: sandbox.handler, check: () => {} } : watchAnswers(sandbox.handler);
  const served = await serve(watched.handler, { host: config.host, port: config.port, portSetting: '--port' });
  sandbox.listensAt(served.url);
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await served.close(0);
    await sandbox.close();
    watched.check();
    if (!options.dataDir) await rm(dataDir, { recursive: true, force: true });
  };
  cleanUpLater(close);
  return { ...sandboxClient(served.url, dataDir, close, config.adminKey), handler: sandbox.handler };
}

/** The same for a sandbox that runs elsewhere. */
export function sandboxClient(
  url: string,
  dataDir: string,
  close: () => Promise<void>,
  admin: string | null = null,
): TestSandbox {
  const request = (
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ) => {
    const isJson =
      body !== undefined && !(body instanceof FormData) && !(body instanceof Uint8Array) && typeof body !== 'string';
    return send(`${url}${path}`, {
      method,
      headers: { ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers },
      body: isJson ? JSON.stringify(body) : ((body ?? null) as NonNullable<RequestInit['body']> | null),
    });
  };
  const control = async (method: string, path: string, body?: unknown) => {
    const answer = await request(method, `/sandbox/${path}`, {
      body,
      headers: admin === null ? {} : { 'x-admin-key': admin },
    });
    if (answer.status >= 400) throw new Error(`${method} /sandbox/${path}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  return {
    url,
    dataDir,
    handler: null,
    request,
    control,
    app: (method, path, { body, headers } = {}) =>
      request(method, `/public/external-app${path}`, { body, headers: { 'x-api-key': apiKey, ...headers } }),
    launch: (options = {}) => control('POST', 'launches', options) as Promise<AnswerBody & { launchUrl: string }>,
    advance: async (advanceMs, launchId) =>
      void (await control('POST', 'clock', { advanceMs, ...(launchId ? { launchId } : {}) })),
    trace: async (launchId) => (await control('GET', `launches/${launchId}/trace`)).calls,
    close,
  };
}

export async function send(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  let body: unknown = text;
  if (/json/.test(response.headers.get('content-type') ?? '')) body = JSON.parse(text);
  // The test states and checks the type of the body.
  return { status: response.status, headers: response.headers, text, body: body as AnswerBody };
}

/** A launch with an operation that is approved already. */
export async function approvedOperation(sandbox: TestSandbox, launch?: { launchId: string; token: string }) {
  const { launchId, token } = launch ?? (await sandbox.launch());
  const { operationId } = (await sandbox.app('POST', `/operation/${token}`, { body: { name: 'test' } })).body;
  await sandbox.control('POST', `operations/${operationId}/approve`);
  return { launchId, token, operationId };
}

/** An upload session of an approved operation. */
export async function openUpload(
  sandbox: TestSandbox,
  fileName = 'output.tif',
  launch?: { launchId: string; token: string },
) {
  const approved = await approvedOperation(sandbox, launch);
  const body = { operationId: approved.operationId, fileName };
  const { uploadId, key } = (await sandbox.app('POST', `/file/${approved.token}/upload/initiate`, { body })).body;
  return { ...approved, uploadId, key };
}

/** The form of one chunk, its fields in the order of `fields`. */
export function chunkForm(fields: Record<string, string | number | Uint8Array>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof Uint8Array) form.append(name, new Blob([new Uint8Array(value)]), 'part');
    else form.append(name, String(value));
  }
  return form;
}

export type OpenedUpload = Awaited<ReturnType<typeof openUpload>>;

export function sendChunk(
  sandbox: TestSandbox,
  { token, uploadId, key }: OpenedUpload,
  partNumber: number | string,
  file: Uint8Array,
): Promise<Answer> {
  return sandbox.app('POST', `/file/${token}/upload/chunk`, { body: chunkForm({ uploadId, key, partNumber, file }) });
}

export function sendComplete(
  sandbox: TestSandbox,
  { token, uploadId, key }: OpenedUpload,
  fileSize: number,
  more: object = {},
): Promise<Answer> {
  return sandbox.app('POST', `/file/${token}/upload/complete`, {
    body: { uploadId, key, fileSize, sourceType: 'UNKNOWN', ...more },
  });
}

/** Deterministic bytes that compress badly. */
export function someBytes(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    bytes[i] = state >> 16;
  }
  return bytes;
}
