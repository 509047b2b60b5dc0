// @module-tag all
/** Secrets that an app has put where they do not belong are in nothing that is shown, kept or handed on. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeReports } from '../../src/commands/certify/outputs.ts';
import { summarize } from '../../src/commands/certify/report.ts';
import { runPlan } from '../../src/commands/certify/run-plan.ts';
import { planVersion, scenarios } from '../../src/commands/certify/scenarios.ts';
import { startSandbox, type RunningSandbox } from '../../src/testing/index.ts';
import { sandboxCall } from '../../src/testing/sandbox-call.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';

const forms: Record<string, (secret: string) => string> = {
  plain: (secret) => secret,
  base64: (secret) => Buffer.from(secret).toString('base64'),
  base64url: (secret) => Buffer.from(`user:${secret}`).toString('base64url'),
  'URL-encoded': (secret) => encodeURIComponent(`a b/${secret}`),
};

interface Places {
  /** Path below the base address, and what is sent. */
  readonly call: (
    method: string,
    path: string,
    init?: { body?: object; headers?: Record<string, string> },
  ) => Promise<unknown>;
  readonly token: string;
  readonly operationId: string;
}

/** Each puts a text somewhere. */
const places: Record<string, (it: Places, text: string) => Promise<unknown>> = {
  'a path': ({ call }, text) => call('GET', `/public/external-app/user/${encodeURIComponent(text)}/detail`),
  'a path of the catalog': ({ call }, text) => call('GET', `/public/stac/collections/${encodeURIComponent(text)}`),
  'a query': ({ call, token }, text) =>
    call('GET', `/public/external-app/operation/${token}?operationId=${encodeURIComponent(text)}`),
  'a query of the catalog': ({ call }, text) =>
    call('GET', `/public/stac/search?collections=${encodeURIComponent(text)}`),
  'a query that nobody knows': ({ call }, text) => call('GET', `/public/stac?secret=${encodeURIComponent(text)}`),
  'a user agent': ({ call, token }, text) =>
    call('GET', `/public/external-app/user/${token}/detail`, { headers: { 'user-agent': `app/${text}` } }),
  'a header of its own': ({ call, token }, text) =>
    call('GET', `/public/external-app/user/${token}/detail`, { headers: { 'x-secret': text } }),
  'an idempotency key': ({ call, token }, text) =>
    call('POST', `/public/external-app/operation/${token}`, {
      headers: { 'idempotency-key': text },
      body: { name: 'a' },
    }),
  'a body': ({ call, token }, text) =>
    call('POST', `/public/external-app/operation/${token}`, { body: { name: text } }),
  'a body, deep in it': ({ call, token }, text) =>
    call('POST', `/public/external-app/operation/${token}`, {
      body: { name: 'a', parameters: { [text]: [{ deep: `x ${text} y` }] } },
    }),
  'a file name': ({ call, token, operationId }, text) =>
    call('POST', `/public/external-app/file/${token}/upload/initiate`, {
      body: { operationId, fileName: `${text.replace(/[/\\]/g, '_')}.tif` },
    }),
  'an error': ({ call, token }, text) =>
    call('POST', `/public/external-app/file/${token}/upload/complete`, {
      body: { uploadId: text, key: text, fileSize: 1, sourceType: text },
    }),
  'a search': ({ call }, text) => call('POST', '/public/stac/search', { body: { ids: [text], collections: [text] } }),
};

/** An app that puts every canary into every place, and does nothing else. */
async function startCarelessApp(platform: RunningSandbox, canaries: readonly string[]) {
  const tried: string[] = [];
  const server = createServer((req, res) => {
    const token = new URL(req.url ?? '/', 'http://app').searchParams.get('token');
    res.end('<title>careless</title>');
    if (token !== null) void work(token);
  });
  async function work(token: string) {
    const call: Places['call'] = async (method, path, { body, headers } = {}) => {
      const response = await fetch(`${platform.url}${path}`, {
        method,
        headers: { 'x-api-key': platform.apiKey, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return response.json().catch(() => null);
    };
    const { operationId } = (await call('POST', `/public/external-app/operation/${token}`, {
      body: { name: 'careless' },
    })) as { operationId: string };
    const all = [...canaries, token, platform.apiKey];
    for (const [i, canary] of all.entries())
      for (const [n, [place, put]] of Object.entries(places).entries()) {
        // Each form in each place, over the canaries.
        const [form, write] = Object.entries(forms)[(i + n) % Object.keys(forms).length]!;
        await put({ call, token, operationId }, write(canary));
        tried.push(`${form} in ${place}`);
      }
    isDone = true;
  }
  let isDone = false;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    launchUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/launch`,
    tried,
    isDone: () => isDone,
  };
}

test(
  '20 canaries, in every place and every form, are in no trace, HAR, page or report',
  { timeout: 900_000 },
  async () => {
    const platform = await startSandbox({ env: { NODE_ENV: 'test' } });
    cleanUpLater(() => platform.close());
    const canaries: string[] = [];
    for (let i = 0; i < 16; i++)
      canaries.push((await sandboxCall(platform, 'createKey', { body: { permissions: ['external_app'] } })).apiKey);
    for (let i = 0; i < 4; i++) canaries.push((await platform.launch('http://127.0.0.1:9/launch')).token);
    const app = await startCarelessApp(platform, canaries);
    const [scenario] = scenarios.filter(({ id }) => id === 'approve-at-once');
    const reports = await runPlan(
      [
        {
          ...scenario!,
          act: async () => void (await expect.poll(app.isDone, { timeout: 900_000, interval: 100 }).toBe(true)),
        },
      ],
      {
        sandbox: platform,
        launchUrl: app.launchUrl,
        launchMode: 'query',
        tokenField: 'token',
        startRequest: null,
        patienceMs: 90_000,
        signal: new AbortController().signal,
        onStatus: () => {},
      },
    );
    expect(new Set(app.tried).size).toBe(Object.keys(places).length * Object.keys(forms).length);
    const launchId = reports[0]!.launches[0]!.launchId;
    const folder = await testFolder();
    const files = ['jsonFile', 'junitFile', 'htmlFile', 'badgeFile'] as const;
    const paths = Object.fromEntries(files.map((name) => [name, join(folder, name)])) as Record<
      (typeof files)[number],
      string
    >;
    await writeReports(
      summarize(reports, {
        app: app.launchUrl,
        planVersion,
        startedAt: new Date(),
        finishedAt: new Date(),
        expected: [],
      }),
      paths,
    );
    const shown = new Map<string, string>();
    for (const name of files) shown.set(name, await readFile(paths[name], 'utf8'));
    for (const path of [
      `sandbox/launches/${launchId}/trace`,
      `sandbox/launches/${launchId}/trace?format=har`,
      `sandbox/launches/${launchId}/verdict`,
      `sandbox/trace`,
      `sandbox/trace?format=har`,
      `launches/${launchId}`,
    ]) {
      const response = await fetch(`${platform.url}/${path}`);
      expect([path, response.status]).toEqual([path, 200]);
      shown.set(path, await response.text());
    }
    // They hold what was done, or they would hold no secret for want of anything.
    expect(shown.get(`sandbox/launches/${launchId}/trace`)).toContain('upload.complete');
    expect(shown.get('sandbox/trace')).toContain('stac.');
    const found = [...shown].flatMap(([where, text]) =>
      [...canaries, platform.apiKey].flatMap((canary) =>
        [
          canary,
          encodeURIComponent(canary),
          Buffer.from(canary).toString('base64').replace(/=+$/, ''),
          Buffer.from(`user:${canary}`).toString('base64url').replace(/=+$/, ''),
        ]
          .filter((form) => text.includes(form))
          .map((form) => `${where}: ${text.slice(text.indexOf(form) - 80, text.indexOf(form) + 60)}`),
      ),
    );
    expect(found).toEqual([]);
  },
);
