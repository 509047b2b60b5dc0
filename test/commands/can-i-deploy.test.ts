/** `can-i-deploy`: an honest pair of files may go live, and thirty dishonest ones may not, each for its own reason. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { early, honestReport, scenarioReport, summaryOf } from '../../lab/attack/honest-report.ts';
import { reasonAgainst, type DeployDemands } from '../../src/commands/can-i-deploy/decision.ts';
import { platformReport, type PlatformReport } from '../../src/commands/can-i-deploy/platform-report.ts';
import { digestOfTraces, type Report } from '../../src/commands/certify/report.ts';
import { scenarios } from '../../src/commands/certify/scenarios.ts';
import { signReport } from '../../src/commands/certify/sign.ts';
import { testFolder } from '../support/folders.ts';
import { startCommand } from '../support/processes.ts';

const [trusted, stranger] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
const at = honestReport().finishedAt;
const hour = 3_600_000;
const demands: DeployDemands = {
  key: trusted.publicKey,
  level: 'robust',
  app: null,
  maxAgeMs: 30 * 24 * hour,
  nowMs: Date.parse(at) + hour,
};

const used = [
  'renewToken',
  'userDetail',
  'createOperation',
  'getOperation',
  'initiateUpload',
  'uploadChunk',
  'completeUpload',
];
const exchange = (call: string): PlatformReport['exchanges'][number] => ({
  ...{ name: `${call}/asked`, call, method: 'POST', facts: { status: '200' }, unreadable: null },
});
const platform: PlatformReport = {
  ...{
    format: 'marketplace-drift/1',
    platform: 'https://platform.example',
    level: 'write',
    result: 'same',
    finishedAt: at,
  },
  ...{ differences: [], unmade: [], exchanges: [...used, 'listModels'].map(exchange) },
};

const sign = (report: Report, key: KeyObject = trusted.privateKey) => signReport(report, key);
const without = (call: string) => ({ ...platform, exchanges: platform.exchanges.filter((one) => one.call !== call) });
const changed = (call: string, more: Partial<PlatformReport['exchanges'][number]>): PlatformReport => ({
  ...platform,
  exchanges: platform.exchanges.map((one) => (one.call === call ? { ...one, ...more } : one)),
});
const breaking = (name: string): PlatformReport => ({
  ...platform,
  differences: [{ exchange: name, fact: 'body.status', verdict: 'breaks the app' }],
});
/** A report with changes that its own maker signs again. */
const forged = (more: (report: Report) => object) => async () => sign({ ...honestReport(), ...more(honestReport()) });
/** A signed report that somebody changes afterwards. */
const tampered = (more: (report: Report) => object) => async () => {
  const report = await sign(honestReport());
  return { ...report, ...more(report) };
};
const firstScenario = (report: Report, more: (one: Report['scenarios'][number]) => object) => ({
  scenarios: report.scenarios.map((one, i) => (i === 0 ? { ...one, ...more(one) } : one)),
});
const withCalls = (
  report: Report,
  change: (calls: Report['scenarios'][number]['launches'][number]['calls']) => unknown,
) =>
  firstScenario(report, (one) => ({
    launches: one.launches.map((launch) => ({ ...launch, calls: change(launch.calls) })),
  }));

test('an honest pair may go live, also if another call of the platform is broken', async () => {
  const report = await sign(honestReport());
  expect(platformReport.safeParse(platform).success).toBe(true);
  expect(await reasonAgainst(report, platform, demands)).toBeNull();
  expect(await reasonAgainst(report, changed('listModels', { facts: { status: '404' } }), demands)).toBeNull();
  expect(await reasonAgainst(report, breaking('listModels/asked'), demands)).toBeNull();
});

type Dishonest = readonly [
  what: string,
  reason: RegExp,
  report: () => Promise<Report | object>,
  platform?: PlatformReport,
  more?: Partial<DeployDemands>,
];
const dishonest: readonly Dishonest[] = [
  ['signed by a stranger', /does not match this report, or this key/, () => sign(honestReport(), stranger.privateKey)],
  ['not signed', /has no signature/, async () => honestReport()],
  ['another app in the head', /does not match/, tampered(() => ({ app: 'http://other.example/launch' }))],
  ['another name', /does not match/, tampered(() => ({ appName: 'Another' }))],
  ['a higher level', /does not match/, tampered(() => ({ level: 'exemplary', result: 'PASSED', note: 1 }))],
  ['a younger date', /does not match/, tampered(() => ({ finishedAt: new Date(Date.parse(at) + 1).toISOString() }))],
  ['a call less', /the trace of .* is not the one that certify recorded/, tampered((report) => withCalls(report, (calls) => calls.slice(1)))],
  ['another status in a trace', /the trace of .* is not the one/, tampered((report) => withCalls(report, (calls) => calls.map((call) => ({ ...call, status: 201 }))))],
  ['another digest', /the trace of .* is not the one/, tampered((report) => firstScenario(report, (one) => ({ launches: one.launches.map((launch) => ({ ...launch, sha256: '0' })) })))],
  ['another digest of all', /the digest of the traces is wrong/, tampered(() => ({ tracesSha256: '0' }))],
  ['a signature by no key', /the signature is by none/, async () => ({ ...honestReport(), signature: { protected: Buffer.from('{"alg":"none"}').toString('base64url'), signature: '' } })],
  ['a signature that is cut', /does not match/, async () => { const report = await sign(honestReport()); return { ...report, signature: { ...report.signature!, signature: report.signature!.signature.slice(0, -4) } }; }],
  ['signed, of an unknown plan', /which this certify does not know/, forged(() => ({ planVersion: '9.9.9' }))],
  ['signed, observed in front of a platform', /which this certify does not know/, forged(() => ({ planVersion: 'observed/1' }))],
  ['signed, with a better result', /its result is not/, forged(() => ({ result: 'WARNING' }))],
  ['signed, with a better level', /its level is not/, forged(() => ({ level: 'protocol' }))],
  ['signed, with a scenario twice', /it has a scenario twice/, forged((report) => { const twice = [...report.scenarios, report.scenarios[0]!]; return { scenarios: twice, tracesSha256: digestOfTraces(twice) }; })],
  ['signed, with a rule less', /its rules are not/, forged((report) => firstScenario(report, ({ rules }) => ({ rules: rules.slice(1) })))],
  ['signed, with another title', /the plan has no such scenario/, forged((report) => firstScenario(report, () => ({ title: 'easy' })))],
  ['signed, with failures that were expected', /failures were expected/, async () => sign(summaryOf(scenarios.map((scenario, i) => scenarioReport(scenario, i === 0 ? early(scenario) : undefined)), { expected: [{ scenario: '*', rule: 'upload-after-approval' }] }))],
  ['signed, of an app that fails', /the report is FINISHED FAILED/, async () => sign(summaryOf(scenarios.map((scenario, i) => scenarioReport(scenario, i === 0 ? early(scenario) : undefined))))],
  ['of half the plan', /the level robust is demanded/, async () => sign(summaryOf(scenarios.filter(({ level }) => level === 'protocol').map((scenario) => scenarioReport(scenario))))],
  ['of another app', /the app http:\/\/mine.example is demanded/, () => sign(honestReport()), platform, { app: 'http://mine.example' }],
  ['too old', /longer ago than --max-age allows/, () => sign(honestReport()), platform, { maxAgeMs: hour / 2 }],
  ['of the future', /in the future/, () => sign(honestReport()), platform, { nowMs: Date.parse(at) - hour }],
  ['a comparison that is too old', /^the platform was compared at .* longer ago/, () => sign(honestReport()), { ...platform, finishedAt: new Date(Date.parse(at) - 60 * 24 * hour).toISOString() }],
  ['a comparison of the future', /^the comparison says that it was made in the future/, () => sign(honestReport()), { ...platform, finishedAt: new Date(Date.parse(at) + 10 * hour).toISOString() }],
  ['a comparison that asked less than the app does', /the app calls upload.chunk, and the platform was not asked it/, () => sign(honestReport()), without('uploadChunk')],
  ['a call that the platform refuses', /the app calls operation.create, and the platform answered it with 400/, () => sign(honestReport()), changed('createOperation', { facts: { status: '400' } })],
  ['an answer that the app cannot read', /cannot read the platform's answer to upload.initiate: key: Required/, () => sign(honestReport()), changed('initiateUpload', { unreadable: 'key: Required' })],
  ['a difference that breaks the app', /a difference breaks the app: getOperation\/asked body.status/, () => sign(honestReport()), breaking('getOperation/asked')],
  ['a difference of nothing that was asked', /a difference of made-up\/x, which it did not ask/, () => sign(honestReport()), breaking('made-up/x')],
]; // oxfmt-ignore

const rows = dishonest.map(([what, reason, report, of = platform, more = {}]) => ({ what, reason, report, of, more }));

test.each(rows)('$what: refused because $reason', async ({ reason, report, of, more }) => {
  // A submission may be anything; the command reads it by its schema first.
  expect(await reasonAgainst((await report()) as Report, of, { ...demands, ...more })).toMatch(reason);
});

test('there are thirty or more', () => {
  expect(dishonest.length).toBeGreaterThanOrEqual(30);
});

test('the command says yes or no, and what is wrong with its files', async () => {
  const folder = await testFolder();
  const file = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const key = await file('key.pem', trusted.publicKey.export({ type: 'spki', format: 'pem' }).toString());
  const report = await file('report.json', JSON.stringify(await sign(honestReport())));
  const fresh = { ...platform, finishedAt: new Date().toISOString() };
  const compared = await file('platform.json', JSON.stringify(fresh));
  const old = await file('old.json', JSON.stringify({ ...fresh, finishedAt: undefined }));
  const run = async (...args: string[]) => {
    const { exited, output } = startCommand('can-i-deploy', args, {});
    return { status: await exited, output: output() };
  };
  const both = ['--app', report, '--public-key', key, '--max-age', '90000d'];
  const yes = await run(...both, '--platform', compared);
  expect([yes.status, yes.output]).toEqual([
    0,
    expect.stringMatching(/^yes: Honest, level exemplary at .* on https:\/\/platform.example/m),
  ]);
  const no = await run(...both, '--platform', compared, '--name', 'http://mine.example');
  expect([no.status, no.output]).toEqual([1, expect.stringMatching(/^no: the app http:\/\/mine.example is demanded/m)]);
  expect((await run(...both, '--platform', old)).output).toMatch(
    /must be a file that drift --json of this release wrote/,
  );
  expect((await run('--app', report)).output).toMatch(/--platform is required|--public-key is required/);
});
