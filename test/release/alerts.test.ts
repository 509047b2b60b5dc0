// @module-tag all
/** Alerts fire on what they name, and stay silent otherwise: by Prometheus's own `promtool`. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { projectRoot, testFolder } from '../support/folders.ts';
import { needing } from '../support/needs.ts';

interface Rule {
  readonly alert?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

/** Series by their values in promtool's notation, a sample each minute: `0x60` is 0 for an hour, `0+1x60` grows by 1. */
type Series = Readonly<Record<string, string>>;

interface Case {
  /** Series of the symptom. */
  readonly bad: Series;
  /** Series just below it. */
  readonly good: Series;
  /** Labels of the alert besides its severity. */
  readonly labels?: Record<string, string>;
  /** Time by which the alert has fired. Default: an hour. */
  readonly at?: string;
}

const waiting = (seconds: number, state: string) => ({ [`app_oldest_run_seconds{state="${state}"}`]: `${seconds}x60` });
const calls = (failed: number) => ({
  'app_platform_calls_total{result="ok"}': `0+${100 - failed}x60`,
  'app_platform_calls_total{result="503"}': `0+${failed}x60`,
});
const polls = (early: number) => ({
  'app_poll_interval_seconds_bucket{le="7"}': `0+${early}x60`,
  app_poll_interval_seconds_count: '0+100x60',
});
const growing = (name: string, bad: string, good: string): Case => ({
  bad: { [`${name}{instance="a"}`]: bad },
  good: { [`${name}{instance="a"}`]: good },
  labels: { instance: 'a' },
});

const cases: Record<string, Case> = {
  AppGone: { bad: { other: '1x60' }, good: { app_ready: '0x60' } },
  AppNotReady: { bad: { app_ready: '0x60' }, good: { app_ready: '0 0 0 1x57' } },
  AppNoWorker: {
    bad: { 'app_workers{is="alive",instance="a"}': '0x60', 'app_workers{is="alive",instance="b"}': '0x60' },
    good: { 'app_workers{is="alive",instance="a"}': '0x60', 'app_workers{is="alive",instance="b"}': '1x60' },
  },
  AppRunsNotBegun: { bad: waiting(121, 'CREATED'), good: { ...waiting(119, 'CREATED'), ...waiting(500, 'APPROVED') } },
  AppRunsWait: { bad: waiting(901, 'APPROVED'), good: { ...waiting(899, 'APPROVED'), ...waiting(9_000, 'UPLOADING') } },
  AppMachineFails: growing('app_runs_passed_on_total', '0+1x60', '0 1 2x58'),
  AppLeasesLost: growing('app_leases_lost_total', '0+1x60', '0 1 2x58'),
  AppPollsLate: { bad: polls(90), good: polls(99) },
  AppDatabaseBusy: {
    bad: { 'app_database_connections{is="waiting"}': '3x60' },
    good: { 'app_database_connections{is="waiting"}': '0x60', 'app_database_connections{is="used"}': '10x60' },
  },
  AppDiskLow: {
    bad: { 'app_disk_free_bytes{instance="a"}': '1000000x60', 'app_disk_free_bytes{instance="b"}': '9000000000x60' },
    good: { 'app_disk_free_bytes{instance="a"}': '2000000000x60' },
    labels: { instance: 'a' },
  },
  AppPagesFull: {
    bad: { 'app_open_pages{instance="a"}': '1901x60' },
    good: { 'app_open_pages{instance="a"}': '1000x60', 'app_open_pages{instance="b"}': '1000x60' },
    labels: { instance: 'a' },
  },
  AppLogDropped: growing('app_log_lines_dropped_total', '0+1x60', '7x60'),
  AppDependencyDown: {
    bad: { 'app_dependency_up{dependency="platform"}': '0x60', 'app_dependency_up{dependency="database"}': '1x60' },
    good: { 'app_dependency_up{dependency="platform"}': '0 0 1x58' },
    labels: { dependency: 'platform' },
  },
  AppRunsFail: {
    bad: { 'app_run_failures_total{code="a"}': '0+0.1x60', 'app_run_failures_total{code="b"}': '0+0.1x60' },
    good: { 'app_run_failures_total{code="a"}': '0+0.05x60' },
  },
  AppQueueLong: {
    bad: { 'app_runs{state="APPROVED"}': '101x60' },
    good: { 'app_runs{state="APPROVED"}': '99x60', 'app_runs{state="AWAITING_APPROVAL"}': '5000x60' },
  },
  AppPlatformErrors: { bad: calls(25), good: calls(15) },
};

test('each alert fires on its symptom, and not just below it', needing('promtool'), async () => {
  const rulesFile = join(projectRoot, 'deploy/prometheus/alerts.yml');
  const { groups } = parse(await readFile(rulesFile, 'utf8')) as { groups: { rules: Rule[] }[] };
  const alerts = new Map(groups.flatMap(({ rules }) => rules).map((rule) => [rule.alert ?? '', rule]));
  alerts.delete('');
  expect([...alerts.keys()].toSorted()).toEqual(Object.keys(cases).toSorted());

  const tests = Object.entries(cases).flatMap(([alertname, { bad, good, labels = {}, at = '60m' }]) => {
    const { labels: own, annotations = {} } = alerts.get(alertname)!;
    const exp_annotations = Object.fromEntries(
      Object.entries(annotations).map(([name, text]) => [
        name,
        text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? ''),
      ]),
    );
    return [
      { series: bad, exp_alerts: [{ exp_labels: { ...own, ...labels }, exp_annotations }] },
      { series: good, exp_alerts: [] },
    ].map(({ series, exp_alerts }) => ({
      interval: '1m',
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      alert_rule_test: [{ eval_time: at, alertname, exp_alerts }],
    }));
  });
  const file = join(await testFolder(), 'alerts.test.yml');
  // YAML contains JSON.
  await writeFile(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }));
  // The error of a failed run has its output.
  const { stdout } = await promisify(execFile)('promtool', ['test', 'rules', file]);
  expect(stdout).toContain('SUCCESS');
});
