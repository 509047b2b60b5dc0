import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Context, Span } from '@opentelemetry/api';
import { KitError } from '../../contract/index.ts';
import type { ObservedCall } from '../../platform-client/index.ts';
import type { Run } from '../runs/run.ts';

/** OpenTelemetry traces, one for each launch with its runs in all processes. No span contains a token, a key or a user's text. */
export interface Traces {
  /** Runs `begin`, and records a span `launch` if it gives one. */
  launch<T extends { readonly id: string } | null>(begin: () => Promise<T>): Promise<T>;
  /** Runs the work of a run's state, and records a span with the name of the state. */
  stage<T>(run: Pick<Run, 'id' | 'launchId' | 'stepId' | 'state'>, work: () => Promise<T>): Promise<T>;
  /** Records a call of the platform, made just now by what `launch` or `stage` runs. Ignores other calls. */
  call(call: ObservedCall): void;
  /** Sends what is left. */
  close(): Promise<void>;
}

const noTraces: Traces = {
  launch: (begin) => begin(),
  stage: (_run, work) => work(),
  call: () => {},
  close: async () => {},
};

/** Longest time for one export with its repeats. The end of the app waits for the last one. */
const timeoutMillis = 3_000;

/** The current work: a launch without an id yet, or a state of a run. */
type Scope =
  | { readonly calls: { readonly call: ObservedCall; readonly endMs: number }[] }
  | { readonly parent: Context; idlePolls: number };

/** Most polls bring no decision: the span of their stage counts them. */
const isIdlePoll = ({ endpoint, result }: ObservedCall) => endpoint === 'operation.status' && result === 'ok';

/** The code of an error, or else the name of its class. */
function typeOf(error: unknown): string {
  if (error instanceof KitError) return error.code;
  return error instanceof Error ? error.constructor.name : typeof error;
}

/** Every process derives the same ids from a launch. */
function idsOf(launchId: string): { traceId: string; spanId: string } {
  const digest = createHash('sha256').update(`trace ${launchId}`).digest('hex');
  return { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48) };
}

/**
 * Exports traces to a collector, by OTLP over HTTP. Without an endpoint, records nothing and loads nothing. A collector that
 * does not answer holds up no run.
 */
export async function createTraces({
  endpoint,
  serviceName,
  attributes: ownAttributes,
  sampledShare,
}: {
  /** Base address of the collector. */
  readonly endpoint: string | null;
  readonly serviceName: string;
  /** Attributes of this process, besides those of `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Share of launches that are recorded, 0 to 1. Every process decides the same for a launch. */
  readonly sampledShare: number;
}): Promise<Traces> {
  if (endpoint === null) return noTraces;
  const [
    { ROOT_CONTEXT, SpanStatusCode, trace, TraceFlags },
    sdk,
    { OTLPTraceExporter },
    { detectResources, envDetector, resourceFromAttributes },
  ] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const sampler = new sdk.TraceIdRatioBasedSampler(sampledShare);
  const random = new sdk.RandomIdGenerator();
  /** The ids of the next span, if they are given. */
  let given: { traceId: string; spanId: string } | null = null;
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({ ...ownAttributes, 'service.name': serviceName }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: new sdk.ParentBasedSampler({ root: sampler }),
    spanProcessors: [
      new sdk.BatchSpanProcessor(new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis })),
    ],
    idGenerator: {
      generateTraceId: () => given?.traceId ?? random.generateTraceId(),
      generateSpanId: () => given?.spanId ?? random.generateSpanId(),
    },
  });
  const tracer = provider.getTracer('marketplace-app-kit');
  const scope = new AsyncLocalStorage<Scope>();

  const flagsOf = (launchId: string) => {
    const { decision } = sampler.shouldSample(ROOT_CONTEXT, idsOf(launchId).traceId);
    return decision === sdk.SamplingDecision.RECORD_AND_SAMPLED ? TraceFlags.SAMPLED : TraceFlags.NONE;
  };
  const launchSpan = (launchId: string) =>
    trace.setSpanContext(ROOT_CONTEXT, { ...idsOf(launchId), traceFlags: flagsOf(launchId), isRemote: true });
  const fail = (span: Span, error: unknown) => {
    // The message of an error may contain a user's text.
    span.setAttribute('error.type', typeOf(error));
    span.setStatus({ code: SpanStatusCode.ERROR });
  };
  const record = ({ endpoint, result, durationMs }: ObservedCall, endMs: number, parent: Context) => {
    const attributes = { 'platform.endpoint': endpoint, 'platform.result': result };
    const span = tracer.startSpan(`platform ${endpoint}`, { startTime: endMs - durationMs, attributes }, parent);
    if (result !== 'ok') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(endMs);
  };

  return {
    async launch(begin) {
      const own: Scope = { calls: [] };
      const startTime = Date.now();
      const launch = await scope.run(own, begin);
      if (launch === null) return launch;
      given = idsOf(launch.id);
      const span = tracer.startSpan(
        'launch',
        { startTime, root: true, attributes: { 'launch.id': launch.id } },
        ROOT_CONTEXT,
      );
      given = null;
      for (const { call, endMs } of own.calls) record(call, endMs, launchSpan(launch.id));
      span.end();
      return launch;
    },
    async stage({ id, launchId, stepId, state }, work) {
      const attributes = { 'launch.id': launchId, 'run.id': id, 'run.state': state, 'step.id': stepId };
      const span = tracer.startSpan(`run ${state}`, { attributes }, launchSpan(launchId));
      const own: Scope = { parent: trace.setSpan(ROOT_CONTEXT, span), idlePolls: 0 };
      try {
        return await scope.run(own, work);
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        if (own.idlePolls > 0) span.setAttribute('platform.polls', own.idlePolls);
        span.end();
      }
    },
    call(call) {
      const within = scope.getStore();
      if (within === undefined) return;
      if ('calls' in within) within.calls.push({ call, endMs: Date.now() });
      else if (isIdlePoll(call)) within.idlePolls += 1;
      else record(call, Date.now(), within.parent);
    },
    close: () => provider.shutdown().catch(() => {}),
  };
}
