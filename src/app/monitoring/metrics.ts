import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { appErrors } from '../app-errors.ts';
import { inTime, type Readiness } from './readiness.ts';
import type { ObservedCall } from '../../platform-client/index.ts';
import { runStates, type RunState } from '../runs/run-state.ts';

export interface MetricsSources {
  readonly countRuns: () => Promise<Partial<Record<RunState, number>>>;
  readonly stepLoad: () => { running: number; waiting: number };
}

export interface Rendered extends MetricsSources {
  readonly readiness: Pick<Readiness, 'ready' | 'dependencies'>;
}

/** Metrics for Prometheus. No label contains text that a user wrote. */
export interface Metrics {
  observeCall(call: ObservedCall): void;
  observeStage(state: RunState, seconds: number): void;
  observeFailure(code: string): void;
  observeStepMemory(bytes: number): void;
  /** Text in Prometheus' format, and its content type. */
  render(sources: Rendered): Promise<{ type: string; text: string }>;
}

const stageBuckets = [0.01, 0.1, 1, 5, 30, 120, 600, 1800, 3600];

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const runs = new Gauge({ name: 'app_runs', help: 'Runs by state.', labelNames: ['state'], registers });
  const steps = new Gauge({
    name: 'app_steps',
    help: 'Processing steps that run, and those that wait for their turn.',
    labelNames: ['is'],
    registers,
  });
  const stages = new Histogram({
    name: 'app_stage_duration_seconds',
    help: 'How long a run was in a state.',
    labelNames: ['state'],
    buckets: stageBuckets,
    registers,
  });
  const failures = new Counter({
    name: 'app_run_failures_total',
    help: 'Runs that this process has seen fail, by the code of the failure.',
    labelNames: ['code'],
    registers,
  });
  // An alert sees a first failure only if its series began at 0.
  for (const [code, { when }] of Object.entries(appErrors)) if (when === 'run') failures.inc({ code }, 0);
  const calls = new Counter({
    name: 'app_platform_calls_total',
    help: 'Calls of the platform, each try by itself, by result: ok, an HTTP status, or unanswered.',
    labelNames: ['endpoint', 'result'],
    registers,
  });
  const callSeconds = new Histogram({
    name: 'app_platform_call_duration_seconds',
    help: 'How long a call of the platform took.',
    labelNames: ['endpoint'],
    registers,
  });
  const stepMemory = new Gauge({
    name: 'app_step_resident_memory_bytes',
    help: 'Resident set of the step process at the latest sample.',
    registers,
  });

  const ready = new Gauge({
    name: 'app_ready',
    help: '1 if this process can do its work, as /ready says.',
    registers,
  });
  const dependencies = new Gauge({
    name: 'app_dependency_up',
    help: '1 if it answers: database, platform.',
    labelNames: ['dependency'],
    registers,
  });

  return {
    observeCall({ endpoint, result, durationMs }) {
      calls.inc({ endpoint, result });
      callSeconds.observe({ endpoint }, durationMs / 1000);
    },
    observeStage: (state, seconds) => stages.observe({ state }, seconds),
    observeFailure: (code) => failures.inc({ code }),
    observeStepMemory: (bytes) => stepMemory.set(bytes),
    async render({ countRuns, stepLoad, readiness }) {
      // The other metrics are needed most while the database is away.
      const counts = await inTime(countRuns()).catch(() => null);
      if (counts === null) runs.reset();
      else for (const state of runStates) runs.set({ state }, counts[state] ?? 0);
      ready.set(readiness.ready ? 1 : 0);
      for (const [dependency, check] of Object.entries(readiness.dependencies))
        dependencies.set({ dependency }, check === 'ok' ? 1 : 0);
      const { running, waiting } = stepLoad();
      if (running === 0) stepMemory.set(0);
      steps.set({ is: 'running' }, running);
      steps.set({ is: 'waiting' }, waiting);
      return { type: registry.contentType, text: await registry.metrics() };
    },
  };
}
