/** The table of calls: what a row alone brings, and what every row must have. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import express from 'express';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';
import { describe, expect, test } from 'vitest';
import {
  callNames,
  calls,
  endpoints,
  errorMessages,
  externalAppEndpoints,
  interfaceCalls,
} from '../../src/contract/index.ts';
import { defineCall } from '../../src/contract/calls/define-call.ts';
import { CallRouter, type Route } from '../../src/sandbox/call/call-router.ts';
import { callContext } from '../../src/sandbox/web/call-context.ts';
import { errorBoundary } from '../../src/sandbox/error-boundary.ts';
import { documentedCalls } from '../../src/sandbox/openapi/document.ts';
import { pino } from 'pino';

describe('one row and one handler', () => {
  const addNote = defineCall<{ fileId: string; dry?: boolean; note: { text: string } }, { id: string }>()({
    endpoint: 'file.note',
    group: 'Files',
    section: '0',
    summary: 'Add a note',
    description: 'Adds a note to a file.',
    method: 'POST',
    path: '/public/file/:fileId/note',
    query: z.object({ dry: z.string().optional() }),
    request: z.object({ text: z.string() }),
    errors: { 404: 'File not found' },
    body: 'note',
    decode: (body) => z.object({ id: z.string() }).parse(body),
  });

  test('are a request of the client', () => {
    expect(addNote.encode({ fileId: 'a b', dry: true, note: { text: 'x' } })).toEqual({
      method: 'POST',
      path: '/public/file/a%20b/note',
      query: { dry: 'true' },
      body: { kind: 'json', value: { text: 'x' } },
    });
    expect(addNote.encode({ fileId: 'a', note: { text: 'x' } })).toMatchObject({ query: {} });
    expect(() => addNote.encode({ fileId: '..', note: { text: 'x' } })).toThrow('one segment of a path');
  });

  test('are a route with its checks, its body and its 405', async () => {
    const checked: string[] = [];
    const router = new CallRouter<Route & { readonly endpoint: string }>(({ endpoint }) => [
      (_req, _res, next) => {
        checked.push(endpoint);
        next();
      },
    ]);
    router.on(
      addNote,
      (req, res) => void res.json({ id: `${String(req.params['fileId'])}: ${JSON.stringify(req.body)}` }),
    );
    const app = express().use(callContext, router.finish(), errorBoundary(pino({ enabled: false })));
    const server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/public/file/a/note`;
      const post = (type: string, body: string) =>
        fetch(url, { method: 'POST', headers: { 'content-type': type }, body });
      const answer = await post('application/json', '{"text":"x"}');
      expect(await answer.json()).toEqual({ id: 'a: {"text":"x"}' });
      expect(checked).toEqual(['file.note']);
      expect((await post('text/plain', 'x')).status).toBe(415);
      const other = await fetch(url);
      expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST']);
    } finally {
      server.close();
    }
  });
});

test('the calls are in one order in Node and here, those of the external-app group in that of the flow', async () => {
  // Node lists the exports of a module by name, and Vitest as they stand there.
  const script = `import * as contract from '${new URL('../../src/contract/index.ts', import.meta.url).href}';
    console.log(JSON.stringify([contract.externalAppEndpoints, contract.endpoints, contract.callNames]))`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  expect(JSON.parse(stdout)).toEqual([externalAppEndpoints, endpoints, callNames]);
  expect(externalAppEndpoints).toEqual([
    ...['token.renew', 'user.detail', 'operation.create', 'operation.status'],
    ...['upload.initiate', 'upload.chunk', 'upload.complete'],
  ]);
});

test('each call of the interface has one name in faults, metrics and traces', () => {
  expect(new Set(endpoints).size).toBe(endpoints.length);
  expect(Object.values(interfaceCalls).filter(({ endpoint }) => !(endpoints as readonly string[]).includes(endpoint))).toEqual([]); // oxfmt-ignore
  expect(errorMessages['upload.complete']).toEqual({
    403: 'Authentication failed',
    404: 'Upload session not found',
    500: 'Failed to complete upload',
  });
});

test.each(documentedCalls.map((call) => [call.id, call] as const))(
  '%s is described, and its example is valid',
  (_id, call) => {
    expect(call.description.length).toBeGreaterThan(15);
    expect(call.summary).not.toBe('');
    const schema = call.json ?? call.form?.fields;
    if (!schema) return;
    expect(call.example).toBeDefined();
    expect(schema.safeParse(call.example).error?.issues ?? []).toEqual([]);
  },
);

test('a row encodes what its schema accepts', () => {
  const operation = interfaceCalls['createOperation']!.example as { name: string };
  const { body, headers, path } = calls.createOperation.encode({ token: 't', idempotencyKey: 'k', operation });
  expect([path, headers, body]).toEqual([
    '/public/external-app/operation/t',
    { 'Idempotency-Key': 'k' },
    { kind: 'json', value: operation },
  ]);
});
