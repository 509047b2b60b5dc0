/** The OpenAPI document is valid, whole, and what the tests hold every answer to. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core';
import parsers from '@stoplight/spectral-parsers';
import rulesets from '@stoplight/spectral-rulesets';
import { expect, test } from 'vitest';
import { keyOf } from '../../src/sandbox/openapi/describe-fields.ts';
import { pageLimits } from '../../src/contract/index.ts';
import { describedDocument, fieldsOf, openApi31, knownDescriptions } from '../../src/sandbox/openapi/document.ts';
import { faultOfAnswer, watchAnswers } from '../support/openapi.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

/** Section 4 of the specification. */
const paths = [
  'get /public/stac/',
  'get /public/stac/catalogs/{catalogId}',
  'get /public/stac/collections/{collectionId}',
  'get /public/stac/collections/{collectionId}/items',
  'get /public/stac/collections/{collectionId}/items/{id}',
  'post /public/stac/search',
  'post /public/file/upload',
  'post /public/file/generateUploadId',
  'post /public/file/uploadChunk',
  'post /public/file/completeUpload',
  'get /public/file/status/{id}',
  'get /public/file/download/url',
  'get /public/inference/models',
  'post /public/inference/run',
  'get /public/inference/status',
  'get /public/inference/download',
  'post /public/external-app/token/{token}/renew',
  'get /public/external-app/user/{token}/detail',
  'post /public/external-app/operation/{token}',
  'get /public/external-app/operation/{token}',
  'post /public/external-app/file/{token}/upload/initiate',
  'post /public/external-app/file/{token}/upload/chunk',
  'post /public/external-app/file/{token}/upload/complete',
];

test('is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(
    openApi31('http://127.0.0.1:4010') as object as Record<string, unknown>,
  );
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test('describes each field and parameter, offers no forbidden one, and declares its tags', () => {
  const document = describedDocument('/');
  const fields = fieldsOf(document);
  expect(fields.length).toBeGreaterThan(500);
  expect(fields.filter(({ schema }) => typeof schema['description'] !== 'string').map(({ path }) => path)).toEqual([]);
  const used = new Set(fields.map(({ path }) => keyOf(path, knownDescriptions)));
  expect(Object.keys(knownDescriptions).filter((key) => !used.has(key))).toEqual([]);
  const names = fields.map(({ path }) => path.join('.'));
  expect(names).toContain('searchItems.in.bbox');
  expect(names).not.toContain('searchItems.in.page');
  expect(names).not.toContain('getSearch.token');
  const tags = Object.values(document.paths ?? {}).flatMap((item) =>
    Object.values(item as Record<string, { tags?: string[] }>).flatMap((call) => call.tags ?? []),
  );
  expect([...new Set(tags)].toSorted()).toEqual(document.tags?.map(({ name }) => name).toSorted());
  for (const id of ['/download/{fileId}', '/public/stac/collections/{collectionId}/items/{id}/data'])
    expect(Object.keys(document.paths?.[id]?.get?.responses ?? {})).toEqual(
      expect.arrayContaining(['200', '206', '416']),
    );
});

/** Findings that the paths of the interface cause, and one of a call that has no errors. */
const forced = [
  ['no-path-trailing-slash', '/public/stac/'],
  ['path-keys-no-trailing-slash', '/public/stac/'],
  ['operation-4xx-response', '/health'],
];

test("Redocly's recommended rules report no other problem", async () => {
  const problems = await lintFromString({
    source: JSON.stringify(openApi31('http://127.0.0.1:4010')),
    absoluteRef: '/openapi.json',
    config: await createConfig({ extends: ['recommended'] }),
  });
  const found = problems.map(({ ruleId, message, location }) => [
    ruleId,
    (location[0]?.pointer ?? '').split('/')[2]?.replaceAll('~1', '/') ?? message,
  ]);
  expect(found.filter(([rule, path]) => !forced.some(([known, at]) => known === rule && at === path))).toEqual([]);
});

test("Spectral's OpenAPI rules report no other problem", async () => {
  const linter = new spectral.Spectral();
  // The types of the two packages differ.
  linter.setRuleset({ extends: [rulesets.oas as unknown as RulesetDefinition] });
  const document = new spectral.Document(
    JSON.stringify(openApi31('http://127.0.0.1:4010')),
    parsers.Json,
    '/openapi.json',
  );
  const found = (await linter.run(document)).map(({ code, path }) => [String(code), String(path[1])]);
  expect(found.filter(([rule, path]) => !forced.some(([known, at]) => known === rule && at === path))).toEqual([]);
});

test('bodies have named schemas, numbers are integers, and files are binary', () => {
  const { paths: calls = {}, components } = openApi31('/');
  const schemas = components?.schemas as Record<string, { properties?: Record<string, object>; enum?: string[] }>;
  expect(schemas['UploadChunkRequest']!.properties).toMatchObject({
    partNumber: { type: 'integer', minimum: 1, maximum: 10_000 },
    file: { type: 'string', format: 'binary' },
  });
  expect(calls['/public/external-app/file/{token}/upload/chunk']?.post?.requestBody).toMatchObject({
    content: { 'multipart/form-data': { schema: { $ref: '#/components/schemas/UploadChunkRequest' } } },
  });
  expect(calls['/public/stac/search']?.get?.parameters).toContainEqual(
    expect.objectContaining({ name: 'limit', schema: { type: 'integer', minimum: 1, maximum: pageLimits.max } }),
  );
  const text = JSON.stringify(openApi31('/'));
  // The list of source types occurs once.
  expect(text.split('"MULTISPECTRAL","HYPERSPECTRAL"').length - 1).toBe(1);
  expect(schemas['SourceType']!.enum).toHaveLength(20);
  // Generators take an integer without a format for 32 bits, and a file may have 10 GiB.
  expect(schemas['CompleteUploadRequest']!.properties).toMatchObject({
    fileSize: { type: 'integer', format: 'int64' },
  });
});

test.each(paths)('describes %s', (line) => {
  const [method = '', path = ''] = line.split(' ');
  expect(openApi31('/').paths?.[path]?.[method as 'get' | 'post']).toMatchObject({
    operationId: expect.any(String) as string,
    responses: { 200: expect.anything() as object, 500: expect.anything() as object },
  });
});

test('is served with a page that asks no other host', async () => {
  const sandbox = await startSandbox();
  const document = (await sandbox.request('GET', '/openapi.json')).body as unknown as { openapi: string };
  expect(document.openapi).toBe('3.1.1');
  const page = await sandbox.request('GET', '/docs');
  expect(page.status).toBe(200);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  const addresses = [...page.text.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"/g)].map(
    ([, address]) => address!,
  );
  expect(addresses.length).toBeGreaterThan(3);
  for (const address of addresses) {
    expect(address).toMatch(/^\/assets\//);
    expect((await sandbox.request('GET', address)).status, address).toBe(200);
  }
  // Every call that is described stands there.
  for (const line of paths) expect(page.text).toContain(line.split(' ')[1]);
  expect((await fetch(`${sandbox.url}/openapi.json`, { method: 'POST' })).status).toBe(405);
});

const seen = {
  method: 'GET',
  path: '/public/file/status/x',
  status: 200,
  mediaType: 'application/json',
  body: '{"id":"x","originalName":"a","status":"QUEUED","createdAt":1}',
};

test('an answer as described has no fault', () => {
  expect(faultOfAnswer(seen)).toBeNull();
});

test.each([
  ['a field of another type', { body: seen.body.replace('1}', '"2026"}') }],
  ['a field that is missing', { body: '{"id":"x","status":"QUEUED","createdAt":1}' }],
  ['a field too many', { body: seen.body.replace('}', ',"secret":1}') }],
  ['a word that is no status', { body: seen.body.replace('QUEUED', 'WAITING') }],
  ['another content type', { mediaType: 'text/html' }],
  ['a status that is not described', { status: 409 }],
  ['an error of another shape', { status: 404, body: '{"message":"File not found"}' }],
  ['a method that is not described', { method: 'PUT', status: 200 }],
  ['no JSON', { body: 'QUEUED' }],
])('%s is a fault', (_name, change) => {
  expect(faultOfAnswer({ ...seen, ...change })).toEqual(expect.any(String));
});

test('a server that answers otherwise is found out', async () => {
  const watched = watchAnswers(
    (_req, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"fine"}'),
  );
  const { createServer } = await import('node:http');
  const server = createServer(watched.handler);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.address() as { port: number };
  await (await fetch(`http://127.0.0.1:${port}/health`, { headers: { 'x-api-key': apiKey } })).text();
  await new Promise((resolve) => server.close(resolve));
  expect(() => watched.check()).toThrow('/health 200');
});
