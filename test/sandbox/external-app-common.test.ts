/** The contract's "Common" table, as far as the external-app group goes. */
import { describe, expect, test } from 'vitest';
import { rawRequest } from '../support/raw-request.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

const calls: [method: string, path: (token: string) => string, allow: string][] = [
  ['POST', (token) => `/token/${token}/renew`, 'POST'],
  ['GET', (token) => `/user/${token}/detail`, 'GET, HEAD'],
  ['POST', (token) => `/operation/${token}`, 'GET, HEAD, POST'],
  ['GET', (token) => `/operation/${token}?operationId=x`, 'GET, HEAD, POST'],
  ['POST', (token) => `/file/${token}/upload/initiate`, 'POST'],
  ['POST', (token) => `/file/${token}/upload/chunk`, 'POST'],
  ['POST', (token) => `/file/${token}/upload/complete`, 'POST'],
];

function expectError(
  answer: { status: number; body: unknown; headers: Headers },
  status: number,
  code: string,
  error: string,
): void {
  expect(answer.status).toBe(status);
  expect(answer.body).toMatchObject({ error, code, requestId: answer.headers.get('x-request-id') });
}

describe.each(calls)('%s %s', (method, path, allow) => {
  test('API key missing or unknown: 403 Authentication failed, whatever the token', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    for (const headers of [{}, { 'x-api-key': 'wrong' }, { 'x-api-key': '' }] as Record<string, string>[]) {
      for (const held of [token, 'unknown']) {
        const answer = await sandbox.request(method, `/public/external-app${path(held)}`, { headers });
        expectError(answer, 403, 'authentication_failed', 'Authentication failed');
      }
    }
  });

  test('permission external_app lacking: 403 Permission Denied, before the token is looked at', async () => {
    const sandbox = await startSandbox();
    const { apiKey: weak } = await sandbox.control('POST', 'keys', {
      permissions: ['files_admin', 'files_upload', 'inference'],
    });
    expectError(
      await sandbox.app(method, path('unknown'), { headers: { 'x-api-key': weak } }),
      403,
      'permission_denied',
      'Permission Denied',
    );
    const { apiKey: right } = await sandbox.control('POST', 'keys', { permissions: ['external_app'] });
    expectError(
      await sandbox.app(method, path('unknown'), { headers: { 'x-api-key': right } }),
      404,
      'token_not_found',
      'Token not found',
    );
  });

  test('token unknown: 404; revoked: 403; expired: 403; each before the body is looked at', async () => {
    const sandbox = await startSandbox();
    expectError(await sandbox.app(method, path('unknown')), 404, 'token_not_found', 'Token not found');
    const revoked = await sandbox.launch();
    await sandbox.control('POST', `launches/${revoked.launchId}/revoke`);
    expectError(await sandbox.app(method, path(revoked.token)), 403, 'token_revoked', 'Token revoked');
    const expired = await sandbox.launch();
    await sandbox.advance(65 * 60_000 + 1, expired.launchId);
    expectError(await sandbox.app(method, path(expired.token)), 403, 'token_expired', 'Token expired');
  });

  test('wrong method: 405 with Allow, before the key is looked at', async () => {
    const sandbox = await startSandbox();
    for (const wrong of ['PUT', 'DELETE', 'PATCH']) {
      const answer = await sandbox.request(wrong, `/public/external-app${path('x')}`);
      expectError(answer, 405, 'method_not_allowed', 'Method Not Allowed');
      expect(answer.headers.get('allow')).toBe(allow);
    }
  });
});

test('API key header: any case of its name', async () => {
  const sandbox = await startSandbox();
  const { token } = await sandbox.launch();
  for (const name of ['X-API-KEY', 'x-api-key', 'X-Api-Key']) {
    const answer = await rawRequest(
      sandbox,
      `GET /public/external-app/user/${token}/detail HTTP/1.1\r\nHost: x\r\n${name}: ${apiKey}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  }
});

test('unknown path: 404 in the error body', async () => {
  const sandbox = await startSandbox();
  for (const path of ['/nowhere', '/public', '/public/external-app/token', '/PUBLIC/external-app/token/x/renew']) {
    expectError(await sandbox.request('GET', path), 404, 'path_not_found', 'Not Found');
  }
  const malformed = await rawRequest(
    sandbox,
    'GET /public/external-app/user/%E0%A4%A/detail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  );
  expect(malformed).toMatch(/^HTTP\/1\.1 400 [^]*"requestId":/);
});

describe.each(['/operation/', 'initiate', 'complete'])('JSON body of %s', (name) => {
  const pathOf = (token: string) => (name === '/operation/' ? `/operation/${token}` : `/file/${token}/upload/${name}`);

  test('malformed JSON: 400 malformed_json', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    for (const body of ['{', '{"name":}', 'name=x', '\u0000']) {
      const answer = await sandbox.app('POST', pathOf(token), {
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe('malformed_json');
    }
  });

  test('wrong content type: 415', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      expectError(
        await sandbox.app('POST', pathOf(token), { body: '{}', headers: { 'content-type': type } }),
        415,
        'unsupported_media_type',
        'Unsupported Media Type',
      );
    }
  });

  test('not an object, empty or far too large: 400, never 413 or 500', async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    for (const body of ['[]', '"text"', '1', 'null', '', JSON.stringify({ name: 'x'.repeat(2_000_000) })]) {
      const answer = await sandbox.app('POST', pathOf(token), {
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(answer.status, body.slice(0, 20)).toBe(400);
      expect(answer.body.details.length).toBeGreaterThan(0);
    }
  });
});

test('request id: a sane one is echoed, anything else is replaced; on every response', async () => {
  const sandbox = await startSandbox();
  for (const sane of ['a', 'A-b_c.9', 'x'.repeat(128)]) {
    const answer = await sandbox.request('GET', '/health', { headers: { 'x-request-id': sane } });
    expect(answer.headers.get('x-request-id')).toBe(sane);
  }
  for (const odd of ['x'.repeat(129), 'a b', 'a/b', '<script>']) {
    const answer = await sandbox.request('GET', '/nowhere', { headers: { 'x-request-id': odd } });
    expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
    expect(answer.headers.get('x-request-id')).not.toBe(odd);
    expect(answer.body.requestId).toBe(answer.headers.get('x-request-id'));
  }
});
