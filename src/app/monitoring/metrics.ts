import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { appErrors } from '../app-errors.ts';
import { inTime, type Readiness } from './readiness.ts';
import type { ObservedCall } from '../../platform-client/index.ts';
import type { RunUsage } from '../runs/run.ts';
import { isFinal, runStates, type RunState } from '../runs/run-state.ts';

/** Sources of values that a process reads for each response. */
export interface MetricsSources {
  readonly countRuns: () => Promise<Partial<Record<RunState, number>>>;
  /** Living workers, and the time at which the oldest run of each unfinished state entered it, in epoch milliseconds. */
  readonly lookAtFleet?: () => Promise<{
    workers: { alive: number; resting: number };
    oldest: Partial<Record<RunState, number>>;
  }>;
  readonly stepLoad: () => { running: number; waiting: number };
  /** Connections of this process to PostgreSQL. Null with SQLite. */
  readonly connections?: () => { total: number; idle: number; waiting: number } | null;
  /** Free bytes of the disk of `DATA_DIR`. */
  readonly freeBytes?: () => Promise<number>;
  /** Bytes that runs hold in their work folders on this machine. */
  readonly workBytes?: () => Promise<number>;
  /** Open pages that are kept up to date by this process. */
  readonly openPages?: () => number;
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
  /** Use of resources by the step of a run. */
  observeUsage(usage: RunUsage): void;
  /** Text in Prometheus' format, and its content type. */
  render(sources: Rendered): Promise<{ type: string; text: string }>;
}

const stageBuckets = [0.01, 0.1, 1, 5, 30, 120, 600, 1800, 3600];
const memoryBuckets = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64].map((gib) => gib * 1024 ** 3);
const pollBuckets = [1.9, 2.5, 3, 4, 5, 7, 10, 30, 120];

/** The app's series, in a registry of their own. */
function defineSeries(registry: Registry) {
  const common = (name: string, help: string, labelNames: readonly string[]) => ({
    ...{ name, help, labelNames, registers: [registry] },
  });
  const gauge = (name: string, help: string, ...labelNames: string[]) => new Gauge(common(name, help, labelNames));
  const counter = (name: string, help: string, ...labelNames: string[]) => new Counter(common(name, help, labelNames));
  return {
    info: gauge(
      'app_info',
      'Always 1: the role, version and newest migration of this process.',
      ...['role', 'version', 'schema'],
    ),
    ready: gauge('app_ready', '1 if this process can do its work, as /ready says.'),
    dependencies: gauge('app_dependency_up', '1 if it answers: database, platform.', 'dependency'),
    workers: gauge('app_workers', 'Living workers of all processes, and those of them that rest.', 'is'),
    runs: gauge('app_runs', 'Runs by state.', 'state'),
    oldest: gauge('app_oldest_run_seconds', 'Time that the oldest run of a state has been in it.', 'state'),
    ended: counter('app_runs_ended_total', 'Runs that ended in this process, by state.', 'state'),
    failures: counter(
      'app_run_failures_total',
      'Runs that this process has seen fail, by the code of the failure.',
      'code',
    ),
    passedOn: counter('app_runs_passed_on_total', 'Runs that this machine could not process, so that others got them.'),
    leasesLost: counter('app_leases_lost_total', 'Leases of this worker that ended before it renewed them.'),
    steps: gauge('app_steps', 'Processing steps that run, and those that wait for their turn.', 'is'),
    stages: new Histogram({
      ...common('app_stage_duration_seconds', 'How long a run was in a state.', ['state']),
      buckets: stageBuckets,
    }),
    stepMemory: gauge('app_step_resident_memory_bytes', 'Resident set of the step process at the latest sample.'),
    stepCpu: counter('app_step_cpu_seconds_total', 'Processor time of the steps of runs.'),
    stepBytes: counter(
      'app_step_bytes_total',
      'Bytes that steps of runs took in, and those that came out.',
      'direction',
    ),
    stepPeaks: new Histogram({
      ...common('app_step_peak_memory_bytes', 'Most resident memory of the step of a run.', []),
      buckets: memoryBuckets,
    }),
    waits: new Histogram({
      ...common('app_step_wait_seconds', 'Time between the approval of a run and the start of its step.', []),
      buckets: stageBuckets,
    }),
    calls: counter(
      'app_platform_calls_total',
      'Calls of the platform, each try by itself, by result: ok, an HTTP status, or unanswered.',
      ...['endpoint', 'result'],
    ),
    callSeconds: new Histogram(
      common('app_platform_call_duration_seconds', 'How long a call of the platform took.', ['endpoint']),
    ),
    pollIntervals: new Histogram({
      ...common('app_poll_interval_seconds', 'Time between two polls of a run. The interface asks for 2 to 5 s.', []),
      buckets: pollBuckets,
    }),
    refusals: counter('app_refusals_total', 'Responses of 400 and above, by status and code.', 'status', 'code'),
    connections: gauge(
      'app_database_connections',
      'Connections of this process to PostgreSQL: total, idle, and queries that wait for one.',
      'is',
    ),
    diskFree: gauge('app_disk_free_bytes', 'Free bytes of the disk of DATA_DIR.'),
    workBytes: gauge(
      'app_work_bytes',
      'Bytes that runs hold in their work folders on this machine. WORK_DISK_BYTES is the limit.',
    ),
    openPages: gauge('app_open_pages', 'Open pages that this process keeps up to date, of at most 2,000.'),
    logDropped: counter('app_log_lines_dropped_total', 'Log lines that were dropped because nobody read them.'),
  };
}

/** Default of `info`: empty labels. */
export function createMetrics(info: ProcessInfo = { role: '', version: '', schema: '' }): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const series = defineSeries(registry);
  series.info.set({ ...info }, 1);
  // An alert sees a first failure only if its series began at 0.
  for (const [code, { when }] of Object.entries(appErrors)) if (when === 'run') series.failures.inc({ code }, 0);
  for (const state of runStates) if (isFinal(state)) series.ended.inc({ state }, 0);

  /** Replaces the values of a gauge with one label. Null: the gauge has no values. */
  function setAll(gauge: Gauge, label: string, values: Readonly<Partial<Record<string, number>>> | null): void {
    gauge.reset();
    for (const [value, number] of Object.entries(values ?? {})) gauge.set({ [label]: value }, number ?? 0);
  }

  return {
    observeCall({ endpoint, result, durationMs }) {
      series.calls.inc({ endpoint, result });
      series.callSeconds.observe({ endpoint }, durationMs / 1000);
    },
    observeStage: (state, seconds) => series.stages.observe({ state }, seconds),
    observeFailure: (code) => series.failures.inc({ code }),
    observeEnd: (state) => series.ended.inc({ state }),
    observePassedOn: () => series.passedOn.inc(),
    observeLeaseLost: () => series.leasesLost.inc(),
    observePollInterval: (seconds) => series.pollIntervals.observe(seconds),
    observeRefusal: (status, code) => series.refusals.inc({ status: String(status), code }),
    observeStepMemory: (bytes) => series.stepMemory.set(bytes),
    observeUsage({ cpuSeconds, bytesIn, bytesOut, peakMemoryBytes, waitSeconds }) {
      series.stepCpu.inc(cpuSeconds);
      series.stepBytes.inc({ direction: 'in' }, bytesIn);
      series.stepBytes.inc({ direction: 'out' }, bytesOut);
      series.stepPeaks.observe(peakMemoryBytes);
      series.waits.observe(waitSeconds);
    },
    async render({
      countRuns,
      lookAtFleet,
      stepLoad,
      connections,
      freeBytes,
      workBytes,
      openPages,
      droppedLogLines,
      nowMs,
      readiness,
    }) {
      // The other metrics are needed most while the database is away.
      const [counts, fleet, free, held] = await Promise.all([
        inTime(countRuns()).catch(() => null),
        lookAtFleet ? inTime(lookAtFleet()).catch(() => null) : null,
        freeBytes ? inTime(freeBytes()).catch(() => null) : null,
        workBytes ? inTime(workBytes()).catch(() => null) : null,
      ]);
      const atMs = nowMs?.() ?? Date.now();
      const ages = (oldest: Partial<Record<RunState, number>>) =>
        runStates
          .filter((state) => !isFinal(state))
          .map((state): [RunState, number] => [state, Math.max(0, atMs - (oldest[state] ?? atMs)) / 1000]);
      setAll(series.workers, 'is', fleet && { ...fleet.workers });
      setAll(series.oldest, 'state', fleet && Object.fromEntries(ages(fleet.oldest)));
      setAll(series.runs, 'state', counts && Object.fromEntries(runStates.map((state) => [state, counts[state] ?? 0])));
      setAll(series.connections, 'is', connections?.() ?? null);
      if (free !== null) series.diskFree.set(free);
      if (held !== null) series.workBytes.set(held);
      series.openPages.set(openPages?.() ?? 0);
      series.logDropped.reset();
      series.logDropped.inc(droppedLogLines?.() ?? 0);
      series.ready.set(readiness.ready ? 1 : 0);
      for (const [dependency, check] of Object.entries(readiness.dependencies))
        series.dependencies.set({ dependency }, check === 'ok' ? 1 : 0);
      const { running, waiting } = stepLoad();
      if (running === 0) series.stepMemory.set(0);
      setAll(series.steps, 'is', { running, waiting });
      return { type: registry.contentType, text: await registry.metrics() };
    },
  };
}
