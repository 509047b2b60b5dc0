import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import * as z from 'zod';
import { assumedProfile, KitError } from '../contract/index.ts';
import { readSandboxConfig } from '../sandbox/config.ts';
import { createSandbox } from '../sandbox/create-sandbox.ts';
import { bringChallengeItems } from './certify/challenge-items.ts';
import { challengePlan } from './certify/challenge.ts';
import { readCertifyOptions, type CertifyOptions, type VerifyOptions } from './certify/options.ts';
import { tableOf, writeReports } from './certify/outputs.ts';
import { exitStatusOf, summarize, type ExpectedFailure, type Report } from './certify/report.ts';
import { runPlan } from './certify/run-plan.ts';
import { planVersion, scenariosOf } from './certify/scenarios.ts';
import { faultOfReport, keyOfReport, readPublicKey, readSignKey, signReport } from './certify/sign.ts';
import { confine } from './confine.ts';
import { endingSignals, runCommand } from './command.ts';
import { loadMyApp } from './my-app.ts';
import { startService } from './service-process.ts';
import { trialRun } from './trial-run.ts';
import { readWireProfile } from './wire-profile.ts';
import { serve } from '../serve.ts';

/** Side of the raster that the app's own run begins with, in pixels. */
const trialSide = 256;
/** An item of a challenge, filled in for each scenario. */
const placeholder = { collectionId: '{collectionId}', itemId: '{itemId}' };
/** How long an app that is started beside the certifier may take until it answers. */
const appStartMs = 120_000;
/** How long a restart of it may take. */
const restartMs = 60_000;

await runCommand(async () => {
  const options = readCertifyOptions(process.argv.slice(2), process.env['INIT_CWD'] ?? process.cwd());
  return 'reportFile' in options ? verify(options) : certify(options);
});

async function verify({ reportFile, publicKeyFile }: VerifyOptions): Promise<number> {
  const text = await readFile(reportFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KitError('bad_arguments', `${reportFile} cannot be read (${error.code})`);
  });
  const report = readReport(text, reportFile);
  const fault = await faultOfReport(report, publicKeyFile === null ? null : await readPublicKey(publicKeyFile));
  if (fault !== null) {
    console.log(`NOT GOOD: ${fault}`);
    return 1;
  }
  console.log(
    `good: ${report.status} ${report.result}  ${report.app}  plan ${report.planVersion}  ${report.finishedAt}`,
  );
  if (publicKeyFile === null)
    console.log(
      `the report itself names the key that signed it; compare that key with the one you trust, or give yours with --public-key:\n${keyOfReport(report)}`,
    );
  return exitStatusOf(report);
}

function readReport(text: string, name: string): Report {
  try {
    const report = JSON.parse(text) as Report;
    if (report.format === 'marketplace-app-certification/1' && Array.isArray(report.scenarios)) return report;
  } catch {
    // Told below.
  }
  throw new KitError('bad_arguments', `${name} is not a report of certify (--json FILE writes one)`);
}

async function certify(options: CertifyOptions): Promise<number> {
  const signKey = options.signKeyFile === null ? null : await readSignKey(options.signKeyFile);
  const expected = options.expectFile === null ? [] : await readExpected(options.expectFile);
  const callerFolder = process.env['INIT_CWD'] ?? process.cwd();
  const definition = options.launchUrl === null ? await loadMyApp() : null;
  const profile =
    options.profileFile === null
      ? (definition?.profile ?? assumedProfile)
      : await readWireProfile(options.profileFile, callerFolder);
  const { restartCommand } = options;
  const interruption = new AbortController();
  const restart = restartCommand === null ? null : () => restartApp(restartCommand, interruption.signal);
  const plan = scenariosOf(profile.limits, restart);
  const trial =
    definition === null
      ? null
      : JSON.stringify(trialRun(definition, trialSide, options.challenge === null ? null : placeholder));
  const usesItems = (
    options.startRequest ? `${options.startRequest.path} ${options.startRequest.body}` : (trial ?? '')
  ).includes(placeholder.itemId);
  const drawn = options.challenge === null ? null : challengePlan(plan, options.challenge, { usesItems });
  const scenarios = drawn?.scenarios ?? plan;
  const chosen = options.only.length === 0 ? scenarios : scenarios.filter(({ id }) => options.only.includes(id));
  const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-certify-'));
  for (const signal of endingSignals) {
    process.on(signal, () => {
      // A second one ends it at once, and what it started with it.
      if (interruption.signal.aborted) process.exit(130);
      interruption.abort(new KitError('interrupted', 'interrupted'));
    });
  }
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    // Where others reach the sandbox they must not approve for the app under test.
    const adminKey = process.env['PUBLIC_URL'] ? randomBytes(32).toString('base64url') : '';
    const config = readSandboxConfig(
      {
        ...process.env,
        LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'error',
        SANDBOX_ADMIN_KEY: adminKey,
        SANDBOX_ADMIN_KEY_FILE: '',
      },
      { port: options.port, data: join(folder, 'sandbox'), seed: 'demo' },
    );
    const apiKey = config.apiKey ?? randomBytes(32).toString('base64url');
    const confinement = await confine(config.confinement, [config.dataDir]);
    const sandbox = await createSandbox({
      config: { ...config, apiKey },
      confinement,
      profile,
      log: pino({ level: config.logLevel, base: { service: 'sandbox' } }, pino.destination({ dest: 2, sync: true })),
    });
    stops.unshift(() => sandbox.close());
    const served = await serve(sandbox.handler, { host: config.host, port: config.port, portSetting: '--port' });
    stops.unshift(() => served.close(0));
    sandbox.listensAt(served.url);
    console.log(`sandbox ready ${served.url}`);

    const items =
      drawn === null
        ? []
        : await bringChallengeItems(drawn.challenge.items, {
            ...{ sandbox, confinement, folder: join(folder, 'scenes'), signal: interruption.signal },
          });
    let { launchUrl, startRequest } = options;
    if (definition !== null) {
      const app = await startService('app', [], {
        PLATFORM_URL: served.url,
        PLATFORM_API_KEY: apiKey,
        APP_SECRET: randomBytes(32).toString('base64url'),
        DATA_DIR: join(folder, 'app'),
        UPLOAD_PART_BYTES: '20000',
        PORT: '0',
        HOST: '127.0.0.1',
        LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'error',
      });
      stops.unshift(() => app.stop());
      launchUrl = `${app.url}/launch`;
      startRequest ??= {
        method: 'POST',
        path: 'api/runs',
        body: trial,
      };
      console.log(`${definition.id.padEnd(18)} ${app.url}`);
    } else {
      if (config.apiKey === null)
        console.log(
          `api key ${apiKey}\n  made because SANDBOX_API_KEY is not set; give the app under test this key and the address ${served.url}`,
        );
      await waitForApp(options.launchUrl!, interruption.signal);
    }
    console.log(`${chosen.length} scenarios side by side; the app polls in real seconds, so this takes a while\n`);
    const startedAt = new Date();
    const reports = await runPlan(chosen, {
      ...options,
      ...(drawn ? { users: drawn.challenge.users, items } : {}),
      sandbox: { url: served.url, adminKey },
      launchUrl: launchUrl!,
      tokenField: profile.launchTokenField,
      startRequest,
      signal: interruption.signal,
      onStatus: (scenario, status) =>
        status !== 'RUNNING' &&
        console.log(`${status.toLowerCase().padEnd(11)} ${scenario.id.padEnd(22)} ${scenario.title}`),
    });
    const summary = summarize(reports, {
      app: launchUrl!,
      planVersion,
      startedAt,
      finishedAt: new Date(),
      expected,
      challenge: drawn?.challenge ?? null,
    });
    const report = signKey === null ? summary : await signReport(summary, signKey);
    console.log(`\n${tableOf(report)}`);
    if (options.level !== null && exitStatusOf(report, options.level) !== exitStatusOf(report))
      console.log(
        `level ${options.level} is demanded, and ${report.level ?? 'none'} was reached: every scenario of a level must be run`,
      );
    await writeReports(report, options);
    return interruption.signal.aborted ? 130 : exitStatusOf(report, options.level);
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
    console.error('interrupted');
    return 130;
  } finally {
    for (const stop of stops) await stop();
  }
}

async function readExpected(path: string): Promise<ExpectedFailure[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KitError('bad_arguments', `${path} cannot be read (${error.code})`);
  });
  const schema = z.array(z.strictObject({ scenario: z.string(), rule: z.string() }));
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new KitError(
      'bad_arguments',
      `${path} must be JSON such as [{"scenario": "chunk-cut", "rule": "chunk-order"}]; "*" stands for any scenario, "outcome" for what did not come`,
    );
  }
}

/** By a shell, as its user wrote it. Throws `KitError` where it fails: nothing is said of the app then. */
async function restartApp(command: string, signal: AbortSignal): Promise<void> {
  // A group of its own: what the shell has started ends with it.
  const child = spawn(command, { shell: true, stdio: ['ignore', 'ignore', 'inherit'], detached: true });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(restartMs)]);
  const end = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  limit.addEventListener('abort', end, { once: true });
  const [code] = (await once(child, 'exit').catch(() => [null])) as [number | null];
  limit.removeEventListener('abort', end);
  signal.throwIfAborted();
  if (limit.aborted)
    throw new KitError(
      'restart_failed',
      `--restart-command did not end within ${restartMs / 1000} s: it must restart the app and end: ${command}`,
    );
  if (code !== 0) throw new KitError('restart_failed', `--restart-command ended with ${code}: ${command}`);
}

/** Until anything answers there: the app may be started when the key is known. Throws `KitError`. */
async function waitForApp(launchUrl: string, signal: AbortSignal): Promise<void> {
  const origin = new URL(launchUrl).origin;
  const giveUpAt = performance.now() + appStartMs;
  for (let told = false; ; told = true) {
    try {
      await (await fetch(origin, { redirect: 'manual', signal: AbortSignal.timeout(5_000) })).arrayBuffer();
      return;
    } catch {
      signal.throwIfAborted();
      if (!told) console.log(`waiting for the app at ${origin}`);
      if (performance.now() > giveUpAt)
        throw new KitError(
          'app_away',
          `nothing answers at ${origin}: start the app under test there, configured to this sandbox, and run certify again`,
        );
      await sleep(500, undefined, { signal });
    }
  }
}
