// @module-tag all
/** The certifier on apps that have one fault each, and on the reference app. It must be able to fail. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pLimit from 'p-limit';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { KitError } from '../../src/contract/index.ts';
import { junitOf, tableOf } from '../../src/commands/certify/outputs.ts';
import { violationsOfFile } from '../support/browser.ts';
import {
  exitStatusOf,
  summarize,
  type ExpectedFailure,
  type Report,
  type ScenarioReport,
} from '../../src/commands/certify/report.ts';
import { challengePlan } from '../../src/commands/certify/challenge.ts';
import { runPlan } from '../../src/commands/certify/run-plan.ts';
import { planVersion, scenarios } from '../../src/commands/certify/scenarios.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testFolder } from '../support/folders.ts';
import { appFaults, startFaultyApp, type AppFault } from '../support/mutants/faulty-app.ts';
import { startCommand } from '../support/processes.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';
import { isThere, needing, python } from '../support/needs.ts';

const shortPlan = ['approve-at-once', 'approve-late', 'reject', 'never-answered', 'token-expires-rotate'];

/** Options of every plan of these tests. A plan waits for all the patience only if an app never does what it should. */
const usual = (patienceMs = 60_000) =>
  ({
    launchMode: 'query',
    tokenField: 'token',
    startRequest: null,
    patienceMs,
    signal: new AbortController().signal,
    onStatus: () => {},
  }) as const;

async function certifyWith(
  launchUrlOf: (platform: { url: string; apiKey: string }) => Promise<string>,
  { patienceMs, refusesAChunk = false }: { patienceMs?: number; refusesAChunk?: boolean } = {},
): Promise<ScenarioReport[]> {
  const sandbox = await startSandbox();
  const launchUrl = await launchUrlOf({ url: sandbox.url, apiKey });
  const chosen = scenarios.filter(({ id }) => shortPlan.includes(id));
  // The published plan refuses no chunk for good.
  const refusing = chosen.map((one) =>
    one.id === 'approve-at-once'
      ? { ...one, faults: [{ endpoint: 'upload.chunk', effect: { status: 500 }, after: 1 } as const] }
      : one,
  );
  return runPlan(refusesAChunk ? refusing : chosen, {
    sandbox,
    launchUrl,
    ...usual(patienceMs),
  });
}

const report = (found: readonly ScenarioReport[], expected: readonly ExpectedFailure[] = []): Report =>
  summarize(found, {
    app: 'http://app.example/launch',
    planVersion,
    startedAt: new Date(0),
    finishedAt: new Date(1),
    expected,
  });

/** Starts an app that prints where it is ready. Gives its launch address. */
async function startScript(program: string, args: readonly string[], { url }: { url: string }): Promise<string> {
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'], PLATFORM_URL: url, PLATFORM_API_KEY: apiKey, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanUpLater(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^app ready (\S+)$/.exec(line)?.[1];
    if (found) return `${found}/launch`;
  }
  throw new Error(`${args.join(' ')} did not start`);
}

const pathOf = (name: string) => new URL(name, import.meta.url).pathname;
const startPython = (fault: keyof typeof pythonBreaks, platform: { url: string }) =>
  startScript('python3', [pathOf('../support/mutants/faulty_app.py'), fault], platform);
const startMinimal = (platform: { url: string }) =>
  startScript(process.execPath, [pathOf('../../examples/minimal.ts')], platform);

/** Faults of the app in Python, and the rule that each breaks. */
const pythonBreaks = {
  'uploads-after-rejection': 'no-work-after-refusal',
  'never-initiates': 'upload-identity',
  'ignores-a-refused-chunk': 'chunk-order',
} as const;
const pythonFaults = Object.keys(pythonBreaks) as (keyof typeof pythonBreaks)[];

const breaks: Record<AppFault, string> = {
  'polls-too-early': 'poll-interval',
  'polls-on-after-approved': 'poll-stops',
  'uploads-before-approval': 'upload-after-approval',
  'uploads-before-it-has-read-approved': 'upload-after-approval',
  'uploads-after-expiry': 'no-work-after-refusal',
  'chunks-out-of-order': 'chunk-order',
  'completes-early': 'chunk-order',
  'changes-the-key-midway': 'upload-identity',
  'reuses-a-token-in-another-launch': 'token-scope',
  'goes-on-with-the-old-token': 'token-scope',
};

describe('apps with one fault each', () => {
  type Name = AppFault | keyof typeof pythonBreaks | 'minimal' | 'none';
  const found = new Map<Name, Report>();
  beforeAll(async () => {
    // All at once, they would answer each other's polls late on a busy machine.
    const turn = pLimit(6);
    const add = (name: Name, ...how: Parameters<typeof certifyWith>) =>
      turn(async () => void found.set(name, report(await certifyWith(...how))));
    await Promise.all([
      ...appFaults.map((fault) => add(fault, (platform) => startFaultyApp(fault, platform))),
      add('none', (platform) => startFaultyApp(null, platform), { patienceMs: 600_000 }),
      add('minimal', startMinimal, { patienceMs: 600_000 }),
      ...(python.reason === null ? pythonFaults : []).map((fault) =>
        add(fault, (platform) => startPython(fault, platform), { refusesAChunk: fault === 'ignores-a-refused-chunk' }),
      ),
    ]);
  }, 900_000);

  test.each(appFaults)('%s: fails its rule and no other', (fault) => {
    const { rules, result } = found.get(fault)!;
    expect(rules.filter((rule) => rule.result === 'FAILED').map(({ rule }) => rule)).toEqual([breaks[fault]]);
    expect([result, exitStatusOf(found.get(fault)!)]).toEqual(['FAILED', 1]);
  });

  test.for(pythonFaults)('an app in Python that %s: fails its rule and no other', needing(python), (fault) => {
    const { rules, scenarios: seen } = found.get(fault)!;
    expect(rules.filter((rule) => rule.result === 'FAILED').map(({ rule }) => rule)).toEqual([pythonBreaks[fault]]);
    if (fault === 'uploads-after-rejection')
      expect(seen.find(({ id }) => id === 'approve-at-once')?.result).toBe('PASSED');
  });

  test.each(['none', 'minimal'] as const)('an app without a fault passes, every rule exercised: %s', (name) => {
    const whole = found.get(name)!;
    expect(
      whole.rules.map(({ result }) => result),
      tableOf(whole),
    ).toEqual(whole.rules.map(() => 'PASSED'));
    expect([whole.status, whole.result, exitStatusOf(whole)]).toEqual(['FINISHED', 'PASSED', 0]);
  });

  test('expected failures do not count; one that did not happen does', () => {
    const { scenarios: seen } = found.get('chunks-out-of-order')!;
    const known = [
      { scenario: '*', rule: 'chunk-order' },
      { scenario: '*', rule: 'outcome' },
    ];
    const met = report(seen, known.slice(0, 1));
    expect(met.expected).toEqual({ met: ['*: chunk-order'], unmet: [] });
    expect(met.rules.find(({ rule }) => rule === 'chunk-order')).toMatchObject({
      result: 'PASSED',
      failedIn: expect.arrayContaining(['approve-at-once']) as string[],
    });
    const unmet = report(seen, [...known.slice(0, 1), { scenario: 'reject', rule: 'poll-stops' }]);
    expect([unmet.expected.unmet, exitStatusOf(unmet)]).toEqual([['reject: poll-stops'], 1]);
  });

  test('a rule that no scenario exercised: not green, and not exit 0', () => {
    const partial = report(found.get('none')!.scenarios.filter(({ id }) => id === 'approve-at-once'));
    expect([partial.result, exitStatusOf(partial)], tableOf(partial)).toEqual(['NOT_EXERCISED', 1]);
  });

  test('table and JUnit tell what was wrong and how to mend it', () => {
    const failed = found.get('uploads-before-approval')!;
    expect(tableOf(failed)).toMatch(
      /upload-after-approval: upload.initiate while the operation was REQUESTED; expected: a status answer APPROVED/,
    );
    const xml = junitOf(failed);
    expect(xml).toContain('<testsuite name="approve-at-once"');
    expect(xml).toMatch(/name="upload-after-approval \(4\.8, rules 1 and 3\)"><failure/);
  });
});

describe('a challenge', () => {
  const plan = scenarios.filter(({ id }) => ['approve-at-once', 'status-fails', 'slow-answers'].includes(id));

  test('is drawn from its seed, the same each time, and another for another seed', () => {
    const [one, again, other] = ['a', 'a', 'b'].map((seed) => challengePlan(scenarios, seed).challenge);
    expect(again).toEqual(one);
    expect(other!.users).not.toEqual(one!.users);
    expect(Object.keys(other!.drawn)).not.toEqual(Object.keys(one!.drawn));
    expect(Object.keys(one!.drawn).sort()).toEqual(scenarios.map(({ id }) => id).sort());
  });

  test(
    'an app that recognises the published plan passes that, and fails the challenge',
    { timeout: 900_000 },
    async () => {
      const results = await Promise.all(
        [null, challengePlan(plan, 'test')].map(async (drawn) => {
          const sandbox = await startSandbox();
          const platform = { url: sandbox.url, apiKey };
          const launchUrl = await startFaultyApp('chunks-out-of-order', platform, ['Amina Okafor', 'Bruno Keller']);
          const found = await runPlan(drawn?.scenarios ?? plan, {
            sandbox,
            launchUrl,
            ...usual(),
            ...(drawn ? { users: drawn.challenge.users } : {}),
          });
          return found
            .flatMap(({ rules }) => rules)
            .filter(({ rule, result }) => rule === 'chunk-order' && result === 'failed').length;
        }),
      );
      expect(results[0]).toBe(0);
      expect(results[1]).toBeGreaterThan(0);
    },
  );
});

test('a level is reached by all its scenarios and those below, and can be demanded', () => {
  const scenario = (level: ScenarioReport['level'], result: ScenarioReport['result'] = 'PASSED') =>
    ({ id: level, level, result, status: 'FINISHED', missing: null, faults: [], launches: [], advisories: [], rules: [{ rule: 'a', clause: '', holds: '', result: 'passed', violations: [], violationCount: 0 }] }) as unknown as ScenarioReport; // oxfmt-ignore
  const plan = ['protocol', 'robust', 'exemplary'].map(
    (level) => ({ id: level, level }) as { id: string; level: ScenarioReport['level'] },
  );
  const of = (all: readonly ScenarioReport[]) =>
    summarize(all, { app: 'a', planVersion, startedAt: new Date(0), finishedAt: new Date(1), expected: [], plan });
  const reached = (...all: ScenarioReport[]) => of(all).level;
  expect(reached(scenario('protocol'), scenario('robust'), scenario('exemplary'))).toBe('exemplary');
  expect(reached(scenario('protocol'), scenario('robust'), scenario('exemplary', 'NOT_EXERCISED'))).toBe('robust');
  expect(reached(scenario('protocol'), scenario('exemplary'))).toBe('protocol');
  expect(reached(scenario('robust'))).toBeNull();
  // None of these scenarios is in the published plan.
  expect(report([scenario('protocol'), scenario('robust')]).level).toBeNull();
  const robust = of([scenario('protocol'), scenario('robust')]);
  expect([exitStatusOf(robust), exitStatusOf(robust, 'robust'), exitStatusOf(robust, 'exemplary')]).toEqual([0, 0, 1]);
});

test('a fault that never fired leaves nothing to say', async () => {
  const sandbox = await startSandbox();
  const launchUrl = await startFaultyApp(null, { url: sandbox.url, apiKey });
  const base = scenarios.find(({ id }) => id === 'approve-at-once')!;
  const [found] = await runPlan(
    [{ ...base, faults: [{ endpoint: 'upload.chunk', effect: { delayMs: 1 }, after: 99 }] }],
    {
      sandbox,
      launchUrl,
      ...usual(),
    },
  );
  expect(found).toMatchObject({ status: 'FINISHED', result: 'NOT_EXERCISED', faults: [{ fired: 0, times: 1 }] });
});

test('a fault that somebody took away has fired no times; what the certifier cannot do is not the app’s', async () => {
  const sandbox = await startSandbox();
  const launchUrl = await startFaultyApp(null, { url: sandbox.url, apiKey });
  const base = scenarios.find(({ id }) => id === 'approve-at-once')!;
  const [cheated, broken] = await runPlan(
    [
      {
        ...base,
        faults: [{ endpoint: 'operation.status', effect: { delayMs: 1 }, after: 99 }],
        async act(launch) {
          await base.act(launch);
          await sandbox.control('DELETE', 'faults');
        },
      },
      {
        ...base,
        async act() {
          throw new KitError('restart_failed', '--restart-command ended with 3');
        },
      },
    ],
    { sandbox, launchUrl, ...usual() },
  );
  expect(cheated).toMatchObject({ status: 'FINISHED', result: 'NOT_EXERCISED', faults: [{ fired: 0, times: 1 }] });
  expect(broken).toMatchObject({ status: 'INTERRUPTED', result: 'NOT_EXERCISED' });
  expect(report([broken!])).toMatchObject({ status: 'INTERRUPTED', level: null });
});

/** Attacks of an app under test on the certifier's machine: it takes its faults away, and moves the clock. */
async function cheat(run: ReturnType<typeof startCommand>, answers: Set<number>): Promise<void> {
  const ended = run.exited.then(() => true);
  const pause = () => Promise.race([ended, sleep(200, false)]);
  for (;;) {
    const url = /^sandbox ready (\S+)$/m.exec(run.output())?.[1];
    if (await pause()) return;
    if (url === undefined) continue;
    for (const [method, path] of [
      ['GET', 'faults'],
      ['DELETE', 'faults'],
      ['POST', 'clock'],
    ] as const) {
      const answer = await fetch(`${url}/sandbox/${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(method === 'POST' && { body: '{"advanceMs":3600000}' }),
      }).catch(() => null);
      if (answer) answers.add(answer.status);
    }
  }
}

test('the table says that the machine was too busy, if the plan did not pass and a judgement was late', () => {
  const violation = { seen: 'a', expected: 'b', advice: 'c' };
  const scenario = (note?: string) =>
    ({
      ...{ id: 'approve-at-once', title: '', level: 'basic', appName: null, status: 'FINISHED', result: 'FAILED' },
      ...{ missing: null, faults: [], launches: [] },
      rules: [
        { rule: 'chunk-order', result: 'FAILED', violations: [violation], violationCount: 1, ...(note && { note }) },
      ],
      advisories: [],
    }) as unknown as ScenarioReport;
  const advice = 'This machine was too busy. Run it again on a machine with less work, or with --patience 300.';
  expect(tableOf(report([scenario('the sandbox was late')]))).toContain(advice);
  expect(tableOf(report([scenario()]))).not.toContain('too busy');
});

test('npm run certify: the reference app passes the whole plan; reports are written, signed, and can be checked', async () => {
  const folder = await testFolder();
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const key = join(folder, 'key.pem');
  const other = join(folder, 'other.pem');
  await writeFile(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(join(folder, 'public.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
  await writeFile(other, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
  const files = { json: join(folder, 'r.json'), junit: join(folder, 'r.xml'), html: join(folder, 'r.html') };
  const run = startCommand(
    'certify',
    [
      '--port',
      '0',
      '--challenge',
      'of-this-test',
      '--level',
      'robust',
      // A busy machine may need more than the usual minute for what the app does.
      '--patience',
      '300',
      '--sign-key',
      key,
      ...Object.entries(files).flatMap(([kind, path]) => [`--${kind}`, path]),
    ],
    // Polls as often as the platform allows: a busy machine then delays a poll by 3 s before it is late.
    { POLL_INTERVAL_MS: '2000' },
  );
  const answers = new Set<number>();
  const cheating = cheat(run, answers);
  expect(await run.exited, run.output()).toBe(0);
  await cheating;
  expect([...answers].filter((status) => status !== 401 && status !== 429)).toEqual([]);
  expect(answers.size).toBeGreaterThan(0);
  const written = JSON.parse(await readFile(files.json, 'utf8')) as Report;
  expect(written.rules.map(({ result }) => result)).toEqual(written.rules.map(() => 'PASSED'));
  expect(written.scenarios.map(({ id, result }) => [id, result]).sort()).toEqual(
    scenarios.map(({ id }) => [id, 'PASSED']).sort(),
  );
  expect([written.level, written.challenge?.seed]).toEqual(['exemplary', 'of-this-test']);
  expect(written.scenarios.flatMap(({ faults }) => faults).every(({ fired, times }) => fired === times)).toBe(true);
  expect(await readFile(files.junit, 'utf8')).not.toContain('<failure');
  expect(await readFile(files.html, 'utf8')).not.toMatch(/src=|href="(?!#)/);
  if (isThere('chromium')) expect(await violationsOfFile(files.html)).toEqual([]);

  const trusted = join(folder, 'public.pem');
  const verify = async (path: string, ...more: string[]) => {
    const key = more.includes('--public-key') ? [] : ['--public-key', trusted];
    const check = startCommand('certify', ['verify', path, ...key, ...more], {});
    return { status: await check.exited, output: check.output() };
  };
  expect(await verify(files.json, '--public-key', join(folder, 'public.pem'))).toMatchObject({
    status: 0,
    output: expect.stringMatching(
      /^report verified: FINISHED PASSED .* level exemplary {2}challenge of-this-test {2}0 expected failures/m,
    ) as string,
  });
  const demanded = ['--level', 'exemplary', '--challenge', 'of-this-test'];
  expect(await verify(files.json, ...demanded)).toMatchObject({ status: 0 });
  expect(await verify(files.json, '--challenge', 'other')).toMatchObject({
    status: 1,
    output: expect.stringContaining('report rejected: the challenge other is demanded') as string,
  });
  expect((await verify(files.json, '--public-key', other)).output).toContain('the signature does not match');
  const forged = join(folder, 'forged.json');
  await writeFile(forged, JSON.stringify({ ...written, app: 'http://another.example/launch' }));
  expect(await verify(forged)).toMatchObject({
    status: 1,
    output: expect.stringContaining('report rejected') as string,
  });
  (written.scenarios[0]!.launches[0]!.calls as unknown[]).pop();
  await writeFile(forged, JSON.stringify(written));
  expect((await verify(forged)).output).toContain('is not the one that certify recorded');
}, 900_000);

test('two loops burn both cores and the sandbox stands still for 10 s: no accusation, and the report says so', async () => {
  const folder = await testFolder();
  const file = join(folder, 'r.json');
  const burning = [0, 1].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  cleanUpLater(() => burning.forEach((one) => one.kill('SIGKILL')));
  const run = startCommand(
    'certify',
    ['--port', '0', '--scenario', 'approve-late', '--scenario', 'two-users', '--patience', '600', '--json', file],
    { POLL_INTERVAL_MS: '2000' },
  );
  // The app polls while both scenarios wait.
  await vi.waitUntil(() => run.output().includes('side by side'), { timeout: 600_000, interval: 250 });
  await sleep(4_000);
  run.child.kill('SIGSTOP');
  await sleep(10_000);
  run.child.kill('SIGCONT');
  await run.exited;
  const { scenarios: seen } = JSON.parse(await readFile(file, 'utf8')) as Report;
  const judged = seen.flatMap(({ rules }) => rules);
  expect(judged.filter(({ result }) => result === 'failed' || result === 'warning')).toEqual([]);
  expect(run.output()).toMatch(/poll-interval: some intervals are not judged .*, because the sandbox was late/);
}, 900_000);

test.each([
  [['--launch-url', 'ftp://x'], /--launch-url ftp:\/\/x must be an http or https address/],
  [['--scenario', 'nope'], /there is no scenario nope; there are approve-at-once/],
  [['--start-request', 'api/runs'], /must be a method, a path/],
  [['--start-request', 'POST api/runs {'], /is not JSON/],
  [['--json', '/nowhere/r.json', '--html', '/tmp/r.html'], /\/nowhere\/r.json cannot be written \(ENOENT\)/],
  [['--public-key', '/nowhere'], /--public-key belongs to verify/],
  [['verify', 'r.json', '--patience', '9'], /verify takes no --patience/],
  [['--sign-key', '/nowhere'], /\/nowhere cannot be read \(ENOENT\)/],
  [['verify'], /verify needs one argument: the report/],
  [['verify', '/dev/null'], /is not a report of certify/],
] as [string[], RegExp][])('%j: exit 1 and one clear message', async (args, message) => {
  const { exited, output } = startCommand('certify', args, {});
  expect(await exited).toBe(1);
  expect(output()).toMatch(message);
  expect(output()).not.toContain('    at ');
});
