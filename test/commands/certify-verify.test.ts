/** `certify verify`: what a signed report proves, and what it does not. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { KitError } from '../../src/contract/index.ts';
import { readReport, unmetDemand } from '../../src/commands/certify/read-report.ts';
import {
  summarize,
  type ExpectedFailure,
  type Report,
  type ScenarioReport,
} from '../../src/commands/certify/report.ts';
import { signReport } from '../../src/commands/certify/sign.ts';
import { planVersion, scenarios } from '../../src/commands/certify/scenarios.ts';
import { testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';

const { privateKey } = generateKeyPairSync('ed25519');
let folder: string;

beforeAll(async () => {
  folder = await testFolder();
  await mkdir(folder, { recursive: true });
});

const found = (result: 'passed' | 'failed'): ScenarioReport[] =>
  scenarios.map(({ id, title, level }) => ({
    id,
    title,
    level,
    appName: null,
    status: 'FINISHED',
    result: result === 'passed' ? 'PASSED' : 'FAILED',
    missing: null,
    faults: [],
    rules: [{ rule: 'poll-stops', clause: '4.8', holds: '', result, violations: [], violationCount: 0 }],
    advisories: [],
    launches: [],
  }));

const signed = (scenarioReports: readonly ScenarioReport[], expected: readonly ExpectedFailure[] = []) =>
  signReport(
    summarize(scenarioReports, {
      app: 'http://app.example/launch',
      planVersion,
      startedAt: new Date(0),
      finishedAt: new Date(1),
      expected,
    }),
    privateKey,
  );

async function written(report: unknown): Promise<string> {
  const file = join(folder, `${crypto.randomUUID()}.json`);
  await writeFile(file, typeof report === 'string' ? report : JSON.stringify(report));
  return file;
}

async function verify(report: unknown, ...more: string[]): Promise<{ status: unknown; output: string }> {
  const { exited, output } = startCommand('certify', ['verify', await written(report), ...more], {});
  return { status: await exited, output: output() };
}

test('a report in which every rule failed, as expected, is good only if the failures are allowed by name', async () => {
  const known = [{ scenario: '*', rule: 'poll-stops' }];
  const report = await signed(found('failed'), known);
  expect(report.result).toBe('PASSED');
  const refused = await verify(report);
  expect([refused.status, refused.output]).toEqual([
    1,
    expect.stringMatching(/^NOT GOOD: 1 failures were expected .*\*: poll-stops/m),
  ]);
  const file = join(folder, 'known.json');
  await writeFile(file, JSON.stringify(known));
  const allowed = await verify(report, '--expect', file);
  expect([allowed.status, allowed.output]).toEqual([0, expect.stringContaining('1 expected failures')]);
});

test('the level and the challenge that are demanded must be the report’s', async () => {
  const report = await signed(found('passed').filter(({ level }) => level !== 'exemplary'));
  const demand = (level: Report['level'], challenge: string | null = null) =>
    unmetDemand(report, { level, challenge, allowed: [] });
  expect(demand('robust')).toBeNull();
  expect(demand('exemplary')).toBe('the level exemplary is demanded, and the report reached robust');
  expect(demand(null, 'a')).toBe('the challenge a is demanded, and the report is of none');
});

test('a mangled report is told in words', async () => {
  const whole = await signed(found('passed'));
  const without = (name: keyof Report) => ({ ...whole, [name]: undefined });
  for (const [mangled, field] of [
    ['{"format":', 'it is not JSON'],
    ['[]', 'it: '],
    [without('scenarios'), 'scenarios: '],
    [without('expected'), 'expected: '],
    [without('level'), 'level: '],
    [{ ...whole, scenarios: [{ id: 'a' }] }, 'scenarios.0.launches: '],
    [{ ...whole, scenarios: [] }, 'scenarios: '],
  ] as const) {
    const refusal = readReport(await written(mangled));
    await expect(refusal, field).rejects.toThrow(`is not a report of certify (--json FILE writes one): ${field}`);
    await expect(refusal).rejects.toBeInstanceOf(KitError);
  }
});
