import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { appErrors } from '../app-errors.ts';
import { inTime, type Readiness } from './readiness.ts';
import type { ObservedCall } from '../../platform-client/index.ts';
import { isFinal, runStates, type RunState } from '../runs/run-state.ts';

/** Sources of values that a process reads when it is asked. Sources that are left out give no series. */
export interface MetricsSources {
  readonly countRuns: () => Promise<Partial<Record<RunState, number>>>;
  /** Number of living workers, and the time since which the oldest run of each unfinished state waits, in epoch milliseconds. */
  readonly lookAtFleet?: () => Promise<{
    workers: { alive: number; resting: number };
    oldest: Partial<Record<RunState, number>>;
  }>;
  readonly stepLoad: () => { running: number; waiting: number };
  /** Connections of this process to PostgreSQL. Null with SQLite. */
  readonly connections?: () => { total: number; idle: number; waiting: number } | null;
  /** Free bytes of the disk of `DATA_DIR`. */
  readonly freeBytes?: () => Promise<number>;
  readonly droppedLogLines?: () => number;
  /** Epoch milliseconds. Default: those of the machine. */
  readonly nowMs?: () => number;
}

/** Facts of this process that do not change. */
export interface ProcessInfo {
  readonly role: string;
  readonly version: string;
  /** The newest migration that it knows. */
  readonly schema: string;
}

export interface Rendered extends MetricsSources {
  readonly readiness: Pick<Readiness, 'ready' | 'dependencies'>;
}

/** Metrics for Prometheus. No label contains text that a user wrote. */
export interface Metrics {
  observeCall(call: ObservedCall): void;
  observeStage(state: RunState, seconds: number): void;
  observeFailure(code: string): void;
  observeEnd(state: RunState): void;
  observePassedOn(): void;
  observeLeaseLost(): void;
  /** The time between two polls of one run. */
  observePollInterval(seconds: number): void;
  /** An answer of 400 or more. */
  observeRefusal(status: number, code: string): void;
  observeStepMemory(bytes: number): void;
  /** Text in Prometheus' format, and its content type. */
  render(sources: Rendered): Promise<{ type: string; text: string }>;
}

const stageBuckets = [0.01, 0.1, 1, 5, 30, 120, 600, 1800, 3600];

export function createMetrics(
  { role, version, schema }: ProcessInfo = { role: 'all', version: '', schema: '' },
): Metrics {
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

  new Gauge({
    name: 'app_info',
    help: 'Always 1: the role, version and newest migration of this process.',
    labelNames: ['role', 'version', 'schema'],
    registers,
  }).set({ role, version, schema }, 1);
  const workers = new Gauge({
    name: 'app_workers',
    help: 'Workers of all processes: alive (the lease holds), and of these resting (an operator told them to).',
    labelNames: ['is'],
    registers,
  });
  const oldest = new Gauge({
    name: 'app_oldest_run_seconds',
    help: 'How long the oldest run of a state has been in it, of all processes.',
    labelNames: ['state'],
    registers,
  });
  const ended = new Counter({
    name: 'app_runs_ended_total',
    help: 'Runs that ended in this process, by state.',
    labelNames: ['state'],
    registers,
  });
  for (const state of runStates) if (isFinal(state)) ended.inc({ state }, 0);
  const passedOn = new Counter({
    name: 'app_runs_passed_on_total',
    help: 'Runs that this machine could not process, and left to another worker.',
    registers,
  });
  const leasesLost = new Counter({
    name: 'app_leases_lost_total',
    help: 'How often the lease of this worker was over before it was renewed.',
    registers,
  });
  const pollIntervals = new Histogram({
    name: 'app_poll_interval_seconds',
    help: 'Time between two polls of one run. The interface asks for 2 to 5 seconds.',
    buckets: [1.9, 2.5, 3, 4, 5, 7, 10, 30, 120],
    registers,
  });
  const connectionsGauge = new Gauge({
    name: 'app_database_connections',
    help: 'Connections of this process to PostgreSQL by use; waiting: queries that wait for one.',
    labelNames: ['is'],
    registers,
  });
  const refusals = new Counter({
    name: 'app_refusals_total',
    help: 'Answers of 400 and above, by status and code.',
    labelNames: ['status', 'code'],
    registers,
  });
  const diskFree = new Gauge({ name: 'app_disk_free_bytes', help: 'Free bytes of the disk of DATA_DIR.', registers });
  const logDropped = new Gauge({
    name: 'app_log_lines_dropped',
    help: 'Lines of the log that were dropped because nobody read them.',
    registers,
  });

  return {
    observeEnd: (state) => ended.inc({ state }),
    observePassedOn: () => passedOn.inc(),
    observeLeaseLost: () => leasesLost.inc(),
    observePollInterval: (seconds) => pollIntervals.observe(seconds),
    observeRefusal: (status, code) => refusals.inc({ status: String(status), code }),
    observeCall({ endpoint, result, durationMs }) {
      calls.inc({ endpoint, result });
      callSeconds.observe({ endpoint }, durationMs / 1000);
    },
    observeStage: (state, seconds) => stages.observe({ state }, seconds),
    observeFailure: (code) => failures.inc({ code }),
    observeStepMemory: (bytes) => stepMemory.set(bytes),
    async render({
      countRuns,
      lookAtFleet,
      stepLoad,
      connections,
      freeBytes,
      droppedLogLines,
      nowMs = Date.now,
      readiness,
    }) {
      // The other metrics are needed most while the database is away.
      const [counts, fleet, free] = await Promise.all([
        inTime(countRuns()).catch(() => null),
        lookAtFleet ? inTime(lookAtFleet()).catch(() => null) : null,
        freeBytes ? inTime(freeBytes()).catch(() => null) : null,
      ]);
      workers.reset();
      oldest.reset();
      if (fleet) {
        for (const [is, number] of Object.entries(fleet.workers)) workers.set({ is }, number);
        for (const state of runStates)
          if (!isFinal(state)) {
            const since = fleet.oldest[state];
            oldest.set({ state }, since === undefined ? 0 : Math.max(0, nowMs() - since) / 1000);
          }
      }
      if (free !== null) diskFree.set(free);
      logDropped.set(droppedLogLines?.() ?? 0);
      const pool = connections?.() ?? null;
      if (pool) for (const [is, number] of Object.entries(pool)) connectionsGauge.set({ is }, number);
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
