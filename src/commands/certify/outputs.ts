import { writeFile } from 'node:fs/promises';
import { Eta } from 'eta';
import { KitError } from '../../contract/index.ts';
import { junitXml } from '../../sandbox/referee/junit.ts';
import { timelineOf } from '../../sandbox/referee/timeline.ts';
import { worst } from '../../sandbox/referee/verdict.ts';
import { codeOf, kitFolder } from '../../files/index.ts';
import type { CertifyOptions } from './options.ts';
import { neverUsed, type Report } from './report.ts';

const templates = kitFolder('templates');

/** Writes the files that were asked for, each that can be written. Throws `KitError` with those that cannot. */
export async function writeReports(
  report: Report,
  options: Pick<CertifyOptions, 'jsonFile' | 'junitFile' | 'htmlFile' | 'badgeFile'>,
): Promise<void> {
  const files: [string | null, () => string][] = [
    [options.jsonFile, () => `${JSON.stringify(report, null, 2)}\n`],
    [options.junitFile, () => junitOf(report)],
    [options.htmlFile, () => htmlOf(report)],
    [options.badgeFile, () => `${JSON.stringify(badgeOf(report))}\n`],
  ];
  const failed: string[] = [];
  for (const [path, text] of files) {
    if (path === null) continue;
    await writeFile(path, text()).catch((error: unknown) =>
      failed.push(`${path} cannot be written (${codeOf(error)})`),
    );
  }
  if (failed.length > 0) throw new KitError('report_not_written', failed.join('\n'));
  const written = files.flatMap(([path]) => path ?? []);
  if (written.length > 0) console.log(`reports: ${written.join(', ')}`);
}

/** Sentences about the permissions of the app's key, the worst first. */
export function permissionLines({ permissions }: Report): string[] {
  if (!permissions) return [];
  const { granted, used, denied } = permissions;
  return [
    ...denied.map((permission) => `FAILED: the app made a call that needs the permission ${permission}, which it does not declare: the platform answers 403. Declare it, or leave out the call`), // oxfmt-ignore
    ...neverUsed(permissions).map((permission) => `warning: the app declares the permission ${permission} and never used it: a key should have no more than the app needs`), // oxfmt-ignore
    `permissions of the app's key: ${granted.join(', ')}; used: ${used.join(', ') || 'none'}`,
  ];
}

/** An expected failure does not count as one; an expected failure that did not happen does. */
export function junitOf({ scenarios, expected, permissions }: Report): string {
  const isExpected = (id: string, rule: string) =>
    expected.met.includes(`${id}: ${rule}`) || expected.met.includes(`*: ${rule}`);
  const suites = scenarios.map(({ id, rules, missing, status }) => {
    const counted = rules.map((rule) =>
      rule.result === 'failed' && isExpected(id, rule.rule) ? { ...rule, result: 'warning' as const } : rule,
    );
    const isFailed = missing?.severity === 'failed' && !isExpected(id, 'outcome');
    return {
      name: id,
      verdict: { result: worst(counted.map(({ result }) => result)), rules: counted },
      more: [
        {
          name: 'outcome',
          failure: isFailed ? missing.message : null,
          isSkipped: status !== 'FINISHED' || missing !== null,
        },
      ],
    };
  });
  const denied = (permissions?.denied ?? []).map((permission) => ({
    name: permission,
    failure: `the app made a call that needs the permission ${permission}, and its key does not have it`,
    isSkipped: false,
  }));
  const unmet = expected.unmet.map((name) => ({
    name,
    failure: 'should have failed as expected, and did not',
    isSkipped: false,
  }));
  return junitXml([
    ...suites,
    ...(denied.length > 0
      ? [{ name: 'permissions', verdict: { result: 'not_exercised' as const, rules: [] }, more: denied }]
      : []),
    ...(unmet.length > 0
      ? [{ name: 'expected failures', verdict: { result: 'not_exercised' as const, rules: [] }, more: unmet }]
      : []),
  ]);
}

/** The level as a badge, in the form that https://shields.io/badges/endpoint-badge reads. */
export function badgeOf({ level, status, result }: Pick<Report, 'level' | 'status' | 'result'>) {
  const colors = { protocol: 'green', robust: 'green', exemplary: 'brightgreen' } as const;
  const isFailed = status === 'FINISHED' && result === 'FAILED';
  return {
    schemaVersion: 1,
    label: 'marketplace',
    message: level ?? (isFailed ? 'failed' : 'not certified'),
    color: level === null ? (isFailed ? 'red' : 'lightgrey') : colors[level],
  };
}

/** One page with everything in it, nothing fetched from anywhere. */
function htmlOf(report: Report): string {
  const drawn = report.scenarios.map(({ launches, rules }) =>
    launches.flatMap(({ launchId, calls, acts }) => {
      const timeline = timelineOf(calls, rules, { causes: acts.map((act) => ({ ...act, tone: toneOf(act.kind) })) });
      return timeline === null ? [] : [{ launchId, ...timeline }];
    }),
  );
  return new Eta({ views: templates, autoEscape: true }).render('certify/report', {
    report,
    findings: findingsOf(report),
    permissions: permissionLines(report),
    timelines: drawn,
  });
}

const toneOf = (kind: string) => (kind === 'approved' ? 'good' : kind === 'clock moved' ? 'plain' : 'bad');

/** Findings to fix: each rule and each missing event once, with the scenarios where it was seen. The worst come first. */
export function findingsOf({ scenarios, rules }: Report) {
  const ofRules = rules.flatMap(({ rule, clause }) => {
    const seen = scenarios.flatMap((scenario) =>
      scenario.rules
        .filter((finding) => finding.rule === rule && finding.violations.length > 0)
        .map((finding) => ({
          scenario: scenario.id,
          title: scenario.title,
          violations: finding.violations,
          holds: finding.holds,
          count: finding.violationCount,
        })),
    );
    const [first] = seen;
    if (!first) return [];
    const severity = seen.some(({ violations }) => violations.some((violation) => violation.severity === 'failed'))
      ? 'failed'
      : 'warning';
    return [{ name: rule, clause, severity, holds: first.holds, advice: first.violations[0]?.advice ?? '', seen }];
  });
  const missing = [
    ...Map.groupBy(
      scenarios.filter((scenario) => scenario.missing !== null),
      ({ missing: problem }) => problem?.message ?? '',
    ),
  ].map(([message, own]) => ({
    name: 'outcome',
    clause: 'the scenario',
    severity: own.some((scenarioReport) => scenarioReport.missing?.severity === 'failed') ? 'failed' : 'warning',
    holds: 'the app comes to the end that the scenario leads to',
    advice: message,
    seen: own.map(({ id, title }) => ({ scenario: id, title, violations: [], holds: '', count: 1 })),
  }));
  return [...ofRules, ...missing].sort((a, b) => Number(b.severity === 'failed') - Number(a.severity === 'failed'));
}

/** Notes on what the rules could not judge: one line for each kind of note, with the scenarios. */
function lateLines({ scenarios }: Report): string[] {
  const notes = scenarios.flatMap(({ id, rules }) =>
    rules.flatMap(({ rule, note }) =>
      note === undefined ? [] : [{ id, text: `${rule}: ${note.replace(/^\d+ of \d+ /, 'some ')}` }],
    ),
  );
  return [...Map.groupBy(notes, ({ text }) => text)].map(
    ([text, own]) => `${text} (${own.map(({ id }) => id).join(', ')})`,
  );
}

/** Options that run the interrupted scenarios again. */
const againOptions = ({ scenarios }: Report) =>
  scenarios.flatMap(({ id, status }) => (status === 'FINISHED' ? [] : [` --scenario ${id}`])).join('');

const glyphs: Readonly<Record<string, string>> = { passed: '+', warning: '!', failed: 'X', not_exercised: '.' };

function levelLine({ level, challenge, platform }: Report): string {
  if (platform !== undefined)
    return `observed in front of ${platform}: only what the app did there is judged, and a level needs the whole plan`;
  return `level ${level ?? 'none (a level needs all of its scenarios)'}${challenge === null ? '' : `, challenge ${challenge.seed}`}`;
}

/** The table for a terminal. */
export function tableOf(report: Report): string {
  const { scenarios, rules } = report;
  const idWidth = Math.max(...scenarios.map(({ id }) => id.length), 8);
  const lines = scenarios.map(({ id, result, status, rules: judged, missing, faults }) => {
    const cells = rules
      .map(({ rule }) =>
        (glyphs[judged.find((finding) => finding.rule === rule)?.result ?? 'not_exercised'] ?? '.').padEnd(2),
      )
      .join('');
    const unfired = faults
      .filter(({ fired, times }) => fired < times)
      .map(({ endpoint }) => `a fault at ${endpoint} never fired`);
    const notes = [missing?.message, ...unfired, status === 'FINISHED' ? undefined : status].filter(
      (note) => note !== undefined,
    );
    return `${id.padEnd(idWidth)}  ${cells} ${result}${notes.length > 0 ? `  ${notes.join('; ')}` : ''}`;
  });
  const legend = rules.map(
    ({ rule, clause, result, exercisedIn }, i) =>
      `  ${i + 1} ${rule.padEnd(22)} ${result.padEnd(13)} ${clause}; exercised in ${exercisedIn.length} of ${scenarios.length}`,
  );
  const violations = scenarios.flatMap(({ id, rules: judged }) =>
    judged
      .filter((finding) => finding.violations.length > 0)
      .map(
        ({ rule, violations: [first], violationCount }) =>
          `${id}: ${rule}: ${first?.seen}; expected: ${first?.expected}${violationCount > 1 ? ` (and ${violationCount - 1} more)` : ''}\n    ${first?.advice}`,
      ),
  );
  const advice = scenarios.flatMap(({ id, advisories }) =>
    advisories
      .filter((scenario) => scenario.violations.length > 0)
      .map(
        ({ rule, violations: [first] }) =>
          `${id}: ${rule} (advice): ${first?.seen}; expected: ${first?.expected}\n    ${first?.advice}`,
      ),
  );
  const late = lateLines(report);
  const expected = [
    ...permissionLines(report),
    ...report.expected.met.map((name) => `expected to fail, and did: ${name}`),
    ...report.expected.unmet.map((name) => `EXPECTED TO FAIL, AND DID NOT: ${name}`),
  ];
  return [
    `${''.padEnd(idWidth)}  ${rules.map((_, i) => String(i + 1).padEnd(2)).join('')}`,
    ...lines,
    '',
    ...legend,
    '  + passed   ! warning   X failed   . not exercised',
    ...(violations.length > 0 ? ['', ...violations] : []),
    ...(advice.length > 0 ? ['', ...advice] : []),
    ...(late.length > 0 ? ['', ...late] : []),
    ...(expected.length > 0 ? ['', ...expected] : []),
    ...(late.length > 0 && report.status === 'FINISHED' && report.result !== 'PASSED'
      ? ['', 'This machine was too busy. Run it again on a machine with less work, or with --patience 300.']
      : []),
    ...(report.status === 'INTERRUPTED'
      ? [
          '',
          `Interrupted scenarios prove nothing about the app. Run them again:${againOptions(report)} (a level needs the whole plan)`,
        ]
      : []),
    '',
    levelLine(report),
    `${report.status} ${report.result}  ${report.app}  plan ${report.planVersion}  traces ${report.tracesSha256.slice(0, 16)}`,
  ].join('\n');
}
