/** Broken, hostile or far too large input gets a clear 4xx, and nothing is lost. */
import { request as httpRequest } from 'node:http';
import { readdir } from 'node:fs/promises';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  datetimeFilter,
  parseInstant,
  searchQuery,
  strictSearchRequest,
  wktGeometry,
} from '../../src/contract/index.ts';
import { documentedCalls } from '../../src/sandbox/openapi/document.ts';
import type { DocumentedCall } from '../../src/sandbox/openapi/documented-call.ts';
import { Cql2 } from '../../src/sandbox/stac/cql2.ts';
import { likeMatcher } from '../../src/sandbox/stac/like.ts';
import { SqlOfSearch } from '../../src/sandbox/stac/search-query.ts';
import { SandboxError } from '../../src/sandbox/web/sandbox-error.ts';
import { downloaded, finalStatus, generateUpload, processed, sendFileChunk, uploadDirectly } from '../support/files.ts';
import { geoTiff } from '../support/geotiff.ts';
import { zip } from '../support/other-files.ts';
import { apiKey, someBytes, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { key } from '../support/stac.ts';
import { onlyInAll } from '../support/tags.ts';

let sandbox: TestSandbox;
let token: string;
beforeAll(async () => {
  sandbox = await startSandbox({ seed: 'demo' });
  ({ token } = await sandbox.launch());
});

const named = (call: DocumentedCall): [string, DocumentedCall] => [`${call.method.toUpperCase()} ${call.path}`, call];
/** The path with a token that is right, so that the body is looked at, and other segments as `value`. */
const pathOf = (call: DocumentedCall, value = 'x') =>
  call.path.replace(':token', token).replace(/:[A-Za-z]+/g, encodeURIComponent(value));
const withJson = documentedCalls.filter(({ json }) => json).map(named);
const withForm = documentedCalls.filter(({ form }) => form).map(named);
const send = (call: DocumentedCall, path: string, body: unknown, headers: Record<string, string> = {}) =>
  sandbox.request(call.method.toUpperCase(), path, { body, headers: { ...key, ...headers } });

describe.each(withJson)('%s', (_name, call) => {
  const json = { 'content-type': 'application/json' };

  test.each(['{', '{"a":}', 'undefined', '{"a":1}}', '\u0000', '{"a":"\ud800'])(
    'malformed JSON %j: 400 malformed_json',
    async (body) => {
      const answer = await send(call, pathOf(call), body, json);
      expect([answer.status, answer.body.code, answer.body.details[0]?.message]).toEqual([
        400,
        'malformed_json',
        'is not JSON',
      ]);
    },
  );

  test.each([
    '[]',
    '"text"',
    '7',
    'null',
    '{"bbox":{},"name":[],"uploadId":7,"permissions":"all","advanceMs":"1","endpoint":4,"id":[],"email":1,"operationId":{},"fileSize":"big"}',
  ])('wrong types %s: 400 with the places', async (body) => {
    const answer = await send(call, pathOf(call), body, json);
    // Launching wants nothing: null is an empty request of it.
    if (call.id === 'launch' && answer.status === 201) return;
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    expect(answer.body.details.length).toBeGreaterThan(0);
    for (const detail of answer.body.details)
      expect(detail).toEqual({ path: expect.any(String) as string, message: expect.any(String) as string });
  });
});

describe.each(withForm)('%s', (_name, call) => {
  test('10,000 fields: 400 and not taken', async () => {
    const form = new FormData();
    for (let i = 0; i < 10_000; i++) form.append(`field${i}`, 'x');
    expect((await send(call, pathOf(call), form)).status).toBe(400);
    if (call.form?.file) return;
    const urlencoded = Array.from({ length: 10_000 }, (_, i) => `field${i}=x`).join('&');
    expect(
      (await send(call, pathOf(call), urlencoded, { 'content-type': 'application/x-www-form-urlencoded' })).status,
    ).toBe(400);
  });

  test.each([
    '',
    'no boundary at all',
    '--b\r\n',
    '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nabc',
  ])('a broken form %j: 400', async (body) => {
    expect((await send(call, pathOf(call), body, { 'content-type': 'multipart/form-data; boundary=b' })).status).toBe(
      400,
    );
  });
});

test.each([
  ['with its length', true],
  ['without', false],
])('a JSON body of 200 MB %s: 400 body_too_large, and it is not kept', async (_name, hasLength) => {
  // The sender's own part is one buffer: what grows is the sandbox's.
  const part = Buffer.alloc(1_000_000, '[');
  const before = process.memoryUsage().rss;
  const total = 200_000_000;
  const answer = await new Promise<{ status: number; text: string; sent: number }>((resolve, reject) => {
    const req = httpRequest(`${sandbox.url}/public/stac/search`, {
      method: 'POST',
      headers: { ...key, 'content-type': 'application/json', ...(hasLength ? { 'content-length': total } : {}) },
    });
    let sent = 0;
    req.on('error', reject).on('response', (res) => {
      let text = '';
      res
        .setEncoding('utf8')
        .on('data', (chunk: string) => (text += chunk))
        .on('end', () => {
          resolve({ status: res.statusCode ?? 0, text, sent });
          req.destroy();
        });
    });
    const more = () => {
      if (req.destroyed || sent >= total) return void req.end();
      sent += part.length;
      if (req.write(part)) setImmediate(more);
      else req.once('drain', more);
    };
    more();
  });
  expect([answer.status, JSON.parse(answer.text)]).toEqual([400, expect.objectContaining({ code: 'body_too_large' })]);
  expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
});

describe('identifiers', () => {
  const fragments = [
    "' OR '1'='1",
    "'; DROP TABLE items; --",
    '%',
    '_',
    '../../etc/passwd',
    '..%2f..%2f',
    '/etc/passwd',
    'C:\\x',
    '\u0000',
    '\ud83d\ude80',
    'é'.repeat(300),
    '__proto__',
    'constructor',
    '{}',
    '[object Object]',
    'null',
    '-1',
    '1e999',
  ];
  const withIds = documentedCalls.filter(({ path, method }) => path.includes(':') && method === 'get').map(named);

  test.each(withIds)('%s: SQL, paths and what else is no id of ours is not found', async (_name, call) => {
    for (const fragment of fragments) {
      const path = call.path.replace(/:[A-Za-z]+/g, encodeURIComponent(fragment));
      const { status } = await send(call, `${path}${call.id === 'getOperation' ? '?operationId=x' : ''}`, undefined);
      expect([403, 404], `${path} ${status}`).toContain(status);
    }
  });

  test('in queries, forms and bodies too', async () => {
    for (const fragment of fragments) {
      const q = encodeURIComponent(fragment);
      const statuses = [
        (await sandbox.request('GET', `/public/file/download/url?fileId=${q}`, { headers: key })).status,
        (await sandbox.request('GET', `/public/inference/status?inferenceId=${q}`, { headers: key })).status,
        (await sandbox.request('GET', `/public/inference/download?inferenceJobId=${q}`, { headers: key })).status,
        (await sandbox.app('GET', `/operation/${token}?operationId=${q}`)).status,
        (
          await sandbox.app('POST', `/file/${token}/upload/initiate`, {
            body: { operationId: fragment, fileName: 'a' },
          })
        ).status,
        (
          await sandbox.app('POST', `/file/${token}/upload/complete`, {
            body: { uploadId: fragment, key: fragment, fileSize: 1, sourceType: 'SAR' },
          })
        ).status,
        (await sandbox.request('POST', '/sandbox/launches', { body: { appId: fragment } })).status,
        (
          await sandbox.request('POST', '/public/inference/run', {
            body: new URLSearchParams({ modelId: fragment, fileId: fragment }).toString(),
            headers: { ...key, 'content-type': 'application/x-www-form-urlencoded' },
          })
        ).status,
      ];
      expect(statuses, fragment).toEqual(statuses.map(() => 404));
      const search = {
        bbox: [-180, -90, 180, 90],
        collections: [fragment],
        datetime: '1900-01-01T00:00:00Z/..',
        ids: [fragment],
        fields: { include: [fragment] },
      };
      const found = await sandbox.request('POST', '/public/stac/search', { body: search, headers: key });
      expect([found.status, (found.body as unknown as { numberMatched: number }).numberMatched], fragment).toEqual([
        200, 0,
      ]);
      const sorted = { ...search, sortby: [{ field: fragment, direction: 'asc' }] };
      expect(
        (await sandbox.request('POST', '/public/stac/search', { body: sorted, headers: key })).status,
        fragment,
      ).toBe(400);
    }
    // Nothing was dropped.
    const { collections } = (await sandbox.request('GET', '/public/stac/collections', { headers: key }))
      .body as unknown as { collections: unknown[] };
    expect(collections.length).toBeGreaterThanOrEqual(3);
  });
});

describe('names of files', () => {
  const refused: [string, string][] = [
    ['..', 'a folder'],
    ['../evil.tif', 'a path'],
    ['a/b.tif', 'a path'],
    ['a\\b.tif', 'a path'],
    ['a\u0000.tif', 'NUL'],
    ['a\nb.tif', 'a control character'],
    ['', 'nothing'],
    ['x'.repeat(300), '300 characters'],
    ['é'.repeat(128), '256 bytes'],
  ];
  test.each(refused)('%j (%s): 400 wherever one is given', async (fileName) => {
    const chunked = await sandbox.request(
      'POST',
      `/public/file/generateUploadId?fileName=${encodeURIComponent(fileName)}`,
      { headers: key },
    );
    expect([chunked.status, chunked.body.details[0]?.path]).toEqual([400, 'fileName']);
    const before = await readdir(`${sandbox.dataDir}/blobs`);
    // In a header a line break ends the field: there the form is broken.
    if (fileName !== '' && !fileName.includes('\n'))
      expect((await uploadDirectly(sandbox, someBytes(10), fileName)).status).toBe(400);
    expect(await readdir(`${sandbox.dataDir}/blobs`)).toEqual(before);
  });

  test.each([
    'a..b.tif',
    'ünïcödé 東京 🚀.tif',
    "it's; rm -rf $(HOME).tif",
    '-rf',
    'CON',
    '%2e%2e%2f.tif',
    'x'.repeat(251) + '.tif',
  ])('%j is a name like any other', async (fileName) => {
    const { fileId } = (await uploadDirectly(sandbox, someBytes(10), fileName)).body;
    expect(await finalStatus(sandbox, fileId)).toBe('FAILED');
    expect((await sandbox.request('GET', `/public/file/status/${fileId}`, { headers: key })).body.originalName).toBe(
      fileName,
    );
    expect([...(await downloaded(sandbox, fileId))]).toEqual([...someBytes(10)]);
  });
});

describe('files', () => {
  test('a GeoTIFF that claims 2^31 pixels and more: FAILED, none of them read', async () => {
    const claims = (width: number, height: number) => {
      const bytes = geoTiff({ width: 4, height: 4, value: () => 1 });
      bytes.writeUInt32LE(width, 18); // the first two tags
      bytes.writeUInt32LE(height, 30);
      return bytes;
    };
    for (const [width, height] of [
      [2 ** 31 - 1, 1],
      [65_536, 32_768],
      [2 ** 31 - 1, 2 ** 31 - 1],
    ] as const) {
      expect((await processed(sandbox, claims(width, height), 'huge.tif', 'MULTISPECTRAL')).status).toBe('FAILED');
    }
    expect((await sandbox.request('GET', '/health')).status).toBe(200);
  });

  test('a zip bomb: FAILED, and little of it on the disk', { tags: [onlyInAll] }, async () => {
    const bomb = await zip({ 'tileset.json': new Uint8Array(600_000_000) });
    expect(bomb.length).toBeLessThan(1_000_000);
    expect((await processed(sandbox, bomb, 'bomb.3tz', 'TILES3D')).status).toBe('FAILED');
    expect(await readdir(`${sandbox.dataDir}/work`).catch(() => [])).not.toContain('unpacked-tileset.json');
  });

  test('an HTML file cannot act on our pages, whatever type it is asked as', async () => {
    const html = Buffer.from('<!doctype html><script>fetch("/sandbox/operations")</script>');
    const { fileId } = await processed(sandbox, html, 'page.html', 'UNKNOWN');
    for (const useDefault of ['true', 'false']) {
      const { text } = await sandbox.request(
        'GET',
        `/public/file/download/url?fileId=${fileId}&useDefaultContentType=${useDefault}`,
        { headers: key },
      );
      const answer = await fetch(text);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-security-policy')).toBe('sandbox');
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      expect(answer.headers.get('content-disposition')).toMatch(/^attachment/);
      expect(answer.headers.get('content-type')).not.toMatch(/html|svg|xml/);
    }
  });
});

test('a part number, size or place that is no number changes nothing', async () => {
  const upload = await generateUpload(sandbox);
  for (const partNumber of ['0', '-1', '1.5', '1e3', '10001', 'x', '99999999999999999999', '']) {
    const form = new FormData();
    for (const [name, value] of Object.entries({ ...upload, partNumber })) form.append(name, value);
    form.append('file', new Blob([new Uint8Array(3)]), 'part');
    expect(
      (await sandbox.request('POST', '/public/file/uploadChunk', { body: form, headers: key })).status,
      partNumber,
    ).toBe(400);
  }
  for (const bbox of [
    ['1', '2', '3', '4'],
    'world',
    [1, 2, 3],
    [1, 2, 3, 4, 5],
    [NaN, 0, 1, 1],
    [0, 10, 1, 5],
    [-181, 0, 1, 1],
    [
      [0, 0],
      [1, 1],
    ],
  ]) {
    const answer = await sandbox.request('POST', '/public/stac/search', {
      body: { bbox, collections: ['a'], datetime: '2024-01-01T00:00:00Z/..' },
      headers: key,
    });
    expect([answer.status, answer.body.details[0]?.path.split('.')[0]], JSON.stringify(bbox)).toEqual([400, 'bbox']);
  }
  expect((await sendFileChunk(sandbox, upload, 1, someBytes(3))).status).toBe(200);
});

describe('parsers, with whatever can be thought of', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.stringMatching(/^[0-9TZ:.+\-/ ]{0,40}$/),
    fc.stringMatching(/^(POINT|POLYGON|MULTIPOLYGON)? ?\(*[0-9 ,.()-]{0,40}$/),
  );
  const read = (schema: { safeParse: (value: unknown) => { success: boolean } }) =>
    fc.assert(
      fc.property(fc.oneof(text, fc.jsonValue()), (value) => void schema.safeParse(value)),
      { numRuns: 2_000 },
    );

  test('an instant is one that writes back, or none', () => {
    fc.assert(
      fc.property(text, (value) => {
        const ms = parseInstant(value);
        if (ms !== null) expect(Number.isFinite(ms)).toBe(true);
      }),
      { numRuns: 3_000 },
    );
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }),
        (date) => parseInstant(date.toISOString()) === date.getTime(),
      ),
    );
  });

  test('intervals, WKT, searches and queries answer yes or no', () => {
    read(datetimeFilter);
    read(wktGeometry);
    read(strictSearchRequest);
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('bbox', 'limit', 'offset', 'fields', 'sortby', 'filter', 'intersects', 'datetime', 'ids'),
          text,
        ),
        (query) => void searchQuery.safeParse(query),
      ),
      { numRuns: 2_000 },
    );
  });

  const operator = fc.constantFrom(
    'and',
    'or',
    'not',
    '=',
    '<>',
    '<',
    'between',
    'in',
    'like',
    'isNull',
    's_intersects',
    't_intersects',
    'x',
  );
  const { filter } = fc.letrec((tie) => ({
    filter: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 2 }),
      fc.record({ property: fc.string() }),
      fc.record({ op: operator, args: fc.oneof(fc.array(tie('filter'), { maxLength: 3 }), fc.jsonValue()) }),
    ),
  }));

  test('a filter is one, or is refused with the place', () => {
    fc.assert(
      fc.property(filter, (json) => {
        try {
          expect(new Cql2(new SqlOfSearch(false)).condition(json)).not.toBe('');
        } catch (error) {
          if (!(error instanceof SandboxError)) throw error;
          expect([error.status, error.details?.[0]?.path.startsWith('filter')]).toEqual([400, true]);
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test('a pattern of like is matched in a moment, however it is made', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[ab%_\\]{0,60}$/),
        fc.stringMatching(/^[ab]{0,200}$/),
        (pattern, value) => void likeMatcher(pattern)(value),
      ),
      { numRuns: 500 },
    );
  });

  test('over the wire: 200 or 400, and never anything else', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            bbox: fc.jsonValue(),
            collections: fc.jsonValue(),
            datetime: fc.oneof(text, fc.jsonValue()),
            filter,
            sortby: fc.jsonValue(),
            fields: fc.jsonValue(),
          },
          { requiredKeys: [] },
        ),
        async (body) => {
          const { status } = await sandbox.request('POST', '/public/stac/search', { body, headers: key });
          expect([200, 400]).toContain(status);
        },
      ),
      { numRuns: 200 },
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
        const { status } = await sandbox.request('POST', '/public/file/upload', {
          body: bytes,
          headers: { ...key, 'content-type': 'multipart/form-data; boundary=b' },
        });
        expect(status).toBe(400);
      }),
      { numRuns: 100 },
    );
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }), async (segment) => {
        const { status } = await sandbox.request(
          'GET',
          `/public/stac/collections/${encodeURIComponent(segment)}/items`,
          { headers: { 'x-api-key': apiKey } },
        );
        expect([404, 405]).toContain(status);
      }),
      { numRuns: 100 },
    );
  });
});
