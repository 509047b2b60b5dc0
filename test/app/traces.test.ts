/** The traces that the app sends to an OpenTelemetry collector. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { launchApp, smallRun, startApp } from '../support/app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
  }[];
  readonly status: { readonly code?: number };
}
interface Export {
  readonly resourceSpans: readonly {
    readonly resource: Pick<Span, 'attributes'>;
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

/** A collector of OTLP in JSON (opentelemetry.io/docs/specs/otlp). */
async function startCollector(status = 200) {
  const bodies: string[] = [];
  const server = createServer(async (req, res) => {
    bodies.push(await text(req));
    res.writeHead(req.url === '/v1/traces' ? status : 404, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  const exports = () => bodies.map((body) => JSON.parse(body) as Export);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    services: () =>
      exports().flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ resource }) => [attribute(resource, 'service.name')]),
      ),
    resources: () =>
      exports().flatMap(({ resourceSpans }) =>
        resourceSpans.map(({ resource }) =>
          Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue])),
        ),
      ),
    spans: () =>
      exports()
        .flatMap(({ resourceSpans }) => resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans),
  };
}

const attribute = ({ attributes }: Pick<Span, 'attributes'>, wanted: string) =>
  attributes.find(({ key }) => key === wanted)?.value.stringValue;

test('a launch and its run are one trace, without a secret in it', async () => {
  const collector = await startCollector();
  const sandbox = await startSandbox();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: 'flood-mapper' };
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'team=maps');
  onTestFinished(() => void vi.unstubAllEnvs());
  const app = await startApp(sandbox.url, { env });
  const { launchId, token, session } = await launchApp(sandbox, app);
  await sandbox.control('POST', 'faults', { launchId, endpoint: 'operation.create', effect: { status: 503 } });
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(id, 'COMPLETED');
  await app.close();

  const spans = collector.spans();
  expect(new Set(collector.services())).toEqual(new Set(['flood-mapper']));
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  const [launch] = spans.filter(({ name }) => name === 'launch');
  expect(launch?.parentSpanId ?? '').toBe('');
  const stages = spans.filter(({ name }) => name.startsWith('run '));
  expect(stages.map(({ name }) => name)).toEqual(
    ['CREATED', 'AWAITING_APPROVAL', 'APPROVED', 'PROCESSING', 'UPLOADING'].map((state) => `run ${state}`),
  );
  for (const stage of stages) {
    expect(stage.parentSpanId).toBe(launch!.spanId);
    expect(attribute(stage, 'run.id')).toBe(id);
    expect(BigInt(stage.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(launch!.startTimeUnixNano));
  }
  const callsWithin = (name: string) => {
    const { spanId } = spans.find((one) => one.name === name)!;
    return spans
      .filter(({ parentSpanId }) => parentSpanId === spanId)
      .map(
        (one) => `${attribute(one, 'platform.endpoint')} ${attribute(one, 'platform.result')} ${one.status.code ?? 0}`,
      );
  };
  expect(callsWithin('launch')).toContain('user.detail ok 0');
  expect(callsWithin('run CREATED')).toEqual(['operation.create 503 2', 'operation.create ok 0']);
  // The span of the stage counts the polls.
  expect(callsWithin('run AWAITING_APPROVAL')).toEqual([]);
  const polls = stages[1]!.attributes.find(({ key }) => key === 'platform.polls')?.value.intValue;
  expect(Number(polls)).toBeGreaterThanOrEqual(1);
  expect(collector.resources()).toContainEqual(expect.objectContaining({ 'app.role': 'all', team: 'maps' }));
  expect(callsWithin('run UPLOADING')).toEqual(
    expect.arrayContaining(['upload.initiate ok 0', 'upload.chunk ok 0', 'upload.complete ok 0']),
  );
  const sent = collector.bodies.join('\n');
  for (const secret of [token, apiKey, session.cookie]) expect(sent).not.toContain(secret);
});

test('a state that fails has the code of its error', async () => {
  const collector = await startCollector();
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  const { launchId, session } = await launchApp(sandbox, app);
  const { id } = await session.start(smallRun);
  await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `launches/${launchId}/revoke`);
  await session.waitFor(id, 'FAILED');
  await app.close();
  const [failed] = collector.spans().filter(({ name }) => name === 'run AWAITING_APPROVAL');
  expect([failed!.status.code, attribute(failed!, 'error.type')]).toEqual([2, 'token_revoked']);
});

test.each([
  ['refuses', 500],
  ['is not there', null],
] as const)('a collector that %s holds up no run, nor the end of the app', async (_what, status) => {
  const url = status === null ? 'http://127.0.0.1:9' : (await startCollector(status)).url;
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: url } });
  const { session } = await launchApp(sandbox, app);
  const { id } = await session.start(smallRun);
  const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${operationId}/approve`);
  await session.waitFor(id, 'COMPLETED');
  await app.close();
});

test('a launch that is not sampled has no spans', async () => {
  const collector = await startCollector();
  const sandbox = await startSandbox();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' };
  const app = await startApp(sandbox.url, { env: { ...env, OTEL_TRACES_SAMPLER_ARG: '0' } });
  const { session } = await launchApp(sandbox, app);
  await session.waitFor((await session.start(smallRun)).id, 'AWAITING_APPROVAL');
  await app.close();
  expect(collector.spans()).toEqual([]);
});
