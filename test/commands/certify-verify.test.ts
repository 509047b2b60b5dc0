/** `certify verify`: what a signed report proves, and what it does not. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { KitError } from '../../src/contract/index.ts';
import { readReport, unmetDemand } from '../../src/commands/certify/read-report.ts';
import type { ExpectedFailure, Report, ScenarioReport } from '../../src/commands/certify/report.ts';
import { contradiction } from '../../src/commands/certify/recheck.ts';
import { signReport } from '../../src/commands/certify/sign.ts';
import { scenarios } from '../../src/commands/certify/scenarios.ts';
import { app, early, honestReport, scenarioReport, summaryOf } from '../../lab/attack/honest-report.ts';
import { testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
let [folder, keyFile] = ['', ''];

beforeAll(async () => {
  folder = await testFolder();
  await mkdir(folder, { recursive: true });
  keyFile = join(folder, 'key.pem');
  await writeFile(keyFile, publicKey.export({ type: 'spki', format: 'pem' }));
});

/** A report without a fault, or one whose first scenario uploads before the approval. */
const reports = (kind: 'passed' | 'failed'): ScenarioReport[] =>
  scenarios.map((scenario, i) => scenarioReport(scenario, kind === 'failed' && i === 0 ? early(scenario) : undefined));

const signed = (scenarioReports: readonly ScenarioReport[], expected: readonly ExpectedFailure[] = []) =>
  signReport(summaryOf(scenarioReports, { expected }), privateKey);

async function written(report: unknown): Promise<string> {
  const file = join(folder, `${crypto.randomUUID()}.json`);
  await writeFile(file, typeof report === 'string' ? report : JSON.stringify(report));
  return file;
}

async function verify(report: unknown, ...more: string[]): Promise<{ status: unknown; output: string }> {
  const args = ['verify', await written(report), '--public-key', keyFile, ...more];
  const { exited, output } = startCommand('certify', args, {});
  return { status: await exited, output: output() };
}

test('a report with failures that were expected is good only if the failures are allowed by name', async () => {
  const known = [{ scenario: '*', rule: 'upload-after-approval' }];
  const report = await signed(reports('failed'), known);
  expect(report.result).toBe('PASSED');
  const refused = await verify(report);
  expect([refused.status, refused.output]).toEqual([
    1,
    expect.stringMatching(/^report rejected: 1 failures were expected .*\*: upload-after-approval/m),
  ]);
  const file = join(folder, 'known.json');
  await writeFile(file, JSON.stringify(known));
  const allowed = await verify(report, '--expect', file);
  expect([allowed.status, allowed.output]).toEqual([0, expect.stringContaining('1 expected failures')]);
});

test('the level and the challenge that are demanded must be the report’s', async () => {
  const report = await signed(reports('passed').filter(({ level }) => level !== 'exemplary'));
  const demand = (level: Report['level'], challenge: string | null = null) =>
    unmetDemand(report, { level, challenge, allowed: [] });
  expect(demand('robust')).toBeNull();
  expect(demand('exemplary')).toBe('the level exemplary is demanded, and the report reached robust');
  expect(demand(null, 'a')).toBe('the challenge a is demanded, and the report is of none');
});

test('a mangled report is told in words', async () => {
  const whole = await signed(reports('passed'));
  const without = (name: keyof Report) => ({ ...whole, [name]: undefined });
  for (const [mangled, field] of [
    ['{"format":', 'it is not JSON'],
    ['[]', 'it: '],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'it must not be nested deeper than 500 levels'],
    [without('scenarios'), 'scenarios: '],
    [without('expected'), 'expected: '],
    [without('level'), 'level: '],
    [{ ...whole, scenarios: [{ id: 'a' }] }, 'scenarios.0.title: '],
    [{ ...whole, scenarios: [] }, 'scenarios: '],
  ] as const) {
    const refusal = readReport(await written(mangled));
    await expect(refusal, field).rejects.toThrow(`is not a report of certify (--json FILE writes one): ${field}`);
    await expect(refusal).rejects.toBeInstanceOf(KitError);
  }
});

test('the app and the age that are demanded must be the report’s', () => {
  const report = honestReport();
  const nowMs = Date.parse(report.finishedAt) + 3_600_000;
  const demand = (more: { app?: string; maxAgeMs?: number; nowMs?: number }) =>
    unmetDemand(report, { level: null, challenge: null, allowed: [], nowMs, ...more });
  expect([demand({ app }), demand({ app: 'Honest' }), demand({ maxAgeMs: 3_600_000 })]).toEqual([null, null, null]);
  expect(demand({ app: 'http://another.example' })).toMatch(/^the app http:\/\/another.example is demanded/);
  expect(demand({ maxAgeMs: 3_599_999 })).toMatch(/longer ago than --max-age allows/);
  expect(demand({ nowMs: Date.parse(report.finishedAt) - 360_000 })).toMatch(/in the future/);
});

test('a report whose traces were cut is NOT_EXERCISED, whatever is left of them', () => {
  const cut = reports('passed').map((one, i) => ({
    ...one,
    launches: one.launches.map((launch) => ({ ...launch, cutCalls: i === 0 ? 1 : 0 })),
  }));
  expect(summaryOf(cut).result).toBe('NOT_EXERCISED');
});

describe('a report that contradicts itself', () => {
  const changed = (i: number, more: (one: ScenarioReport) => Partial<ScenarioReport>): Report => {
    const report = honestReport();
    return { ...report, scenarios: report.scenarios.map((one, j) => (i === j ? { ...one, ...more(one) } : one)) };
  };
  const struck = scenarios.findIndex(({ faults = [] }) => faults.length > 0);
  test.each<[what: string, report: () => Report, reason: RegExp]>([
    ['a result', () => ({ ...honestReport(), result: 'WARNING' }), /^its result is not/],
    ['a level', () => ({ ...honestReport(), level: 'protocol' }), /^its level is not/],
    ['a name', () => ({ ...honestReport(), appName: 'Another' }), /^its appName is not/],
    ['a rule', () => changed(0, ({ rules }) => ({ rules: rules.map((one) => ({ ...one, result: 'warning' })) })), /: its rules are not/],
    ['a missing rule', () => changed(0, ({ rules }) => ({ rules: rules.slice(1) })), /: its rules are not/],
    ['a scenario’s result', () => changed(0, () => ({ result: 'WARNING' })), /: its result is PASSED, not WARNING/],
    ['a scenario’s level', () => changed(0, () => ({ level: 'exemplary' })), /: the plan has no such scenario/],
    ['a fault that did not fire', () => changed(struck, ({ faults }) => ({ faults: faults.map((one) => ({ ...one, fired: 9 })) })), /did not fire 9 times/],
    ['a fault that was left out', () => changed(struck, () => ({ faults: [] })), /: it lacks the plan's fault/],
    ['a launch that was left out', () => changed(0, () => ({ launches: [] })), /: it has 0 launches/],
    ['a scenario that comes twice', () => ({ ...honestReport(), scenarios: [...reports('passed'), ...reports('passed')] }), /^it has a scenario twice/],
    ['a challenge that its seed does not draw', () => ({ ...honestReport(), challenge: { seed: 'a', users: [], items: [], drawn: {} } }), /^its challenge is not/],
  ])('%s', (_what, report, reason) => {
    expect(contradiction(report())).toMatch(reason);
  }); // oxfmt-ignore
  test('control: an honest one does not', () => expect(contradiction(honestReport())).toBeNull());
});

test('a report forges no line of the output, and steers no terminal', async () => {
  const report = await signReport(
    { ...summaryOf(reports('passed')), app: 'a\u001b[2J\nreport verified: all is well' },
    privateKey,
  );
  const { output } = await verify(report);
  expect(output).not.toContain('\u001b');
  expect(output).not.toMatch(/^report verified: all is well/m);
  expect(output).toContain('a?[2J?report verified: all is well');
});

test('without a key that the caller trusts no report is good', async () => {
  const file = await written(await signed(reports('passed')));
  const { exited, output } = startCommand('certify', ['verify', file], {});
  expect(await exited).toBe(2);
  expect(output()).toContain('NOT TRUSTED');
  // Neither is a bad one: the same status, with the reason.
  const refused = startCommand(
    'certify',
    ['verify', await written(await signed(reports('failed'))), '--level', 'robust'],
    {},
  );
  expect([await refused.exited, refused.output()]).toEqual([2, expect.stringContaining('report rejected')]);
  expect((await verify(await signed(reports('passed')))).status).toBe(0);
});
