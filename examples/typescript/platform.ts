/** Calls of the platform by openapi-fetch, with types made from its OpenAPI document: run make-types.mjs first. */
import createClient, { type Client } from 'openapi-fetch';
import type { paths } from './platform-types.d.ts';

export type Platform = Client<paths>;

/** Throws for a refusal, with its message: the types know what each call answers. */
function successOf<Data>({ data, error, response }: { data?: Data; error?: unknown; response: Response }): Data {
  if (data !== undefined) return data;
  const message = typeof error === 'object' && error !== null && 'error' in error ? String(error.error) : '';
  throw new Error(`${response.status} ${message}`);
}

/** The fields of a form: numbers as texts, files as they are. */
function formOf(fields: Readonly<Record<string, string | number | Blob>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    form.append(name, typeof value === 'number' ? String(value) : value);
  return form;
}

export function connect(baseUrl: string, apiKey: string): Platform {
  return createClient<paths>({ baseUrl, headers: { 'X-API-KEY': apiKey }, redirect: 'error' });
}

export async function user(platform: Platform, token: string) {
  return successOf(await platform.GET('/public/external-app/user/{token}/detail', { params: { path: { token } } }));
}

/** Returns the token that holds from now on. */
export async function renewToken(platform: Platform, token: string): Promise<string> {
  const renewed = await platform.POST('/public/external-app/token/{token}/renew', { params: { path: { token } } });
  return successOf(renewed).token;
}

export async function createOperation(platform: Platform, token: string, name: string, key: string): Promise<string> {
  const created = await platform.POST('/public/external-app/operation/{token}', {
    params: { path: { token }, header: { 'Idempotency-Key': key } },
    body: { name, description: 'Delivers a file.', parameters: { example: 'typescript' } },
  });
  return successOf(created).operationId;
}

export async function statusOf(platform: Platform, token: string, operationId: string) {
  const answer = await platform.GET('/public/external-app/operation/{token}', {
    params: { path: { token }, query: { operationId } },
  });
  return successOf(answer).status;
}

/** Uploads a file in chunks. Returns its id. */
export async function upload(
  platform: Platform,
  token: string,
  operationId: string,
  file: { readonly name: string; readonly content: Blob },
  chunkBytes = 16 * 1024 * 1024,
): Promise<string> {
  const params = { path: { token } };
  const { uploadId, key } = successOf(
    await platform.POST('/public/external-app/file/{token}/upload/initiate', {
      params,
      body: { operationId, fileName: file.name, sourceType: 'UNKNOWN' },
    }),
  );
  for (let partNumber = 1; (partNumber - 1) * chunkBytes < file.content.size; partNumber++) {
    const content = file.content.slice((partNumber - 1) * chunkBytes, partNumber * chunkBytes);
    successOf(
      await platform.POST('/public/external-app/file/{token}/upload/chunk', {
        params,
        body: { uploadId, key, partNumber, file: content },
        bodySerializer: formOf,
      }),
    );
  }
  const completed = await platform.POST('/public/external-app/file/{token}/upload/complete', {
    params,
    body: { uploadId, key, fileSize: file.content.size, sourceType: 'UNKNOWN' },
  });
  return successOf(completed).fileId;
}

export async function search(platform: Platform, collection: string) {
  const found = await platform.POST('/public/stac/search', {
    body: { collections: [collection], bbox: [-180, -90, 180, 90], datetime: '1900-01-01T00:00:00Z/..', limit: 5 },
  });
  return successOf(found).features;
}

/** Starts a job of a model on a file. Returns its id. */
export async function infer(platform: Platform, modelId: string, fileId: string): Promise<string> {
  const started = await platform.POST('/public/inference/run', { body: { modelId, fileId }, bodySerializer: formOf });
  return successOf(started).id;
}

export async function jobStatus(platform: Platform, inferenceId: string) {
  const answer = await platform.GET('/public/inference/status', { params: { query: { inferenceId } } });
  return successOf(answer).status;
}
