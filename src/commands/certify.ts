import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import * as z from 'zod';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { assumedProfile, KitError } from '../contract/index.ts';
import { scratchFolder } from '../files/index.ts';
import { bringChallengeItems } from './certify/challenge-items.ts';
import { challengePlan } from './certify/challenge.ts';
import { startByCommand, waitForApp, type AppUnderTest } from './certify/app-under-test.ts';
import {
  certifyArguments,
  usage,
  readCertifyOptions,
  type CertifyOptions,
  type StartRequest,
  type VerifyOptions,
} from './certify/options.ts';
import { tableOf, writeReports } from './certify/outputs.ts';
import { readReport, unmetDemand } from './certify/read-report.ts';
import { contradiction } from './certify/recheck.ts';
import { exitStatusOf, summarize, type ExpectedFailure } from './certify/report.ts';
import { isBusy, MachineLoad, loadText } from './certify/machine.ts';
import { observe } from './certify/observe/observe.ts';
import { runPlan } from './certify/run-plan.ts';
import { planVersion, scenariosOf } from './certify/scenarios.ts';
import { faultOfReport, keyOfReport, readPublicKey, readSignKey, signReport } from './certify/sign.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { readJson, requireWritable } from './files.ts';
import { ownApp } from './own-app.ts';
import { startOwnSandbox } from './own-sandbox.ts';
import { startService } from './service-process.ts';
import { readWireProfile } from './wire-profile.ts';

/** Side of the raster that the app's own run begins with, in pixels. */
const trialSide = 256;
/** An item of a challenge, filled in for each scenario. */
const placeholder = { collectionId: '{collectionId}', itemId: '{itemId}' };
/** Time limit for a restart of the app, in milliseconds. */
const restartMs = 60_000;

export default defineCommand(import.meta, {
  usage,
  ...certifyArguments,
  async run(given) {
    const options = readCertifyOptions(given, callerFolder());
    if ('reportFile' in options) return verify(options);
    return 'upstream' in options ? observe(options) : certify(options);
  },
});

/** Exit statuses of `verify`. A report is good or not good only by a key that the caller names. */
const verified = { good: 0, notGood: 1, notTrusted: 2 } as const;

/** Replaces control characters: a report is text from somebody else, and must not forge lines or steer a terminal. */
const onOneLine = (text: string) => text.replace(/\p{Cc}/gu, '?');

/** Verifies the signature and the digests of a report, judges its traces again, and checks it against the demands. */
async function verify({ reportFile, publicKeyFile, expectFile, ...demands }: VerifyOptions): Promise<number> {
  const report = await readReport(reportFile);
  const allowed = expectFile === null ? [] : await readExpected(expectFile);
  const fault =
    (await faultOfReport(report, publicKeyFile === null ? null : await readPublicKey(publicKeyFile))) ??
    contradiction(report) ??
    unmetDemand(report, { ...demands, allowed });
  if (fault !== null) {
    console.log(`report rejected: ${onOneLine(fault)}`);
    return publicKeyFile === null ? verified.notTrusted : verified.notGood;
  }
  const facts = onOneLine(
    [
      `${report.status} ${report.result}`,
      report.app,
      `plan ${report.planVersion}`,
      `polls every ${report.limits.pollIntervalMs.min} to ${report.limits.pollIntervalMs.max} ms`,
      `${report.scenarios.length} scenarios`,
      `level ${report.level ?? 'none'}`,
      `challenge ${report.challenge?.seed ?? 'none'}`,
      `${report.expected.met.length} expected failures`,
      report.finishedAt,
    ].join('  '),
  );
  if (publicKeyFile !== null) {
    console.log(`report verified: ${facts}`);
    return verified.good;
  }
  console.log(
    `NOT TRUSTED: the report agrees with itself, but anybody can sign a report. Give the key that you trust with --public-key FILE.\n${facts}\nThe report names this key:\n${keyOfReport(report)}`,
  );
  return verified.notTrusted;
}

async function certify(options: CertifyOptions): Promise<number> {
  for (const file of [options.jsonFile, options.junitFile, options.htmlFile, options.badgeFile])
    if (file !== null) await requireWritable(file);
  const signKey = options.signKeyFile === null ? null : await readSignKey(options.signKeyFile);
  const expected = options.expectFile === null ? [] : await readExpected(options.expectFile);
  const isOwnApp = options.launchUrl === null && options.startCommand === null;
  const definition = isOwnApp ? await ownApp() : null;
  if (isOwnApp && definition === null)
    throw wrongArguments('certify needs --launch-url or --start, because this package contains no app', usage);
  const profile =
    options.profileFile === null
      ? (definition?.profile ?? assumedProfile)
      : await readWireProfile(options.profileFile, callerFolder());
  const { restartCommand } = options;
  const interruption = new AbortController();
  const restart = restartCommand === null ? null : () => restartApp(restartCommand, interruption.signal);
  const plan = scenariosOf(profile.limits, restart);
  const trial = definition === null ? null : await trialBody(definition, options);
  const usesItems = (
    options.startRequest ? `${options.startRequest.path} ${options.startRequest.body}` : (trial ?? '')
  ).includes(placeholder.itemId);
  const drawn = options.challenge === null ? null : challengePlan(plan, options.challenge, { usesItems });
  const scenarios = drawn?.scenarios ?? plan;
  const chosen = options.only.length === 0 ? scenarios : scenarios.filter(({ id }) => options.only.includes(id));
  const scratch = scratchFolder('certify');
  const folder = scratch.path;
  onInterrupt(() => interruption.abort(new KitError('interrupted', 'interrupted')));
  const stops: (() => Promise<unknown>)[] = [() => scratch.remove()];
  try {
    const sandbox = await startOwnSandbox({
      folder: join(folder, 'sandbox'),
      profile,
      port: options.port,
      permissions: options.permissions,
      settings: { ...process.env, LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'error' },
    });
    const { apiKey } = sandbox;
    stops.unshift(() => sandbox.close());
    console.log(`sandbox ready ${sandbox.url}`);

    const items =
      drawn === null
        ? []
        : await bringChallengeItems(drawn.challenge.items, {
            sandbox: sandbox.platform,
            confinement: sandbox.confinement,
            folder: join(folder, 'scenes'),
            signal: interruption.signal,
          });
    const { launchUrl, startRequest, app } = await startApp(options, {
      ...{ sandbox, folder, definition, trial, stops, signal: interruption.signal },
    });
    const machine = MachineLoad.watch();
    stops.unshift(() => machine.stop());
    await machine.ready;
    if (machine.load.problem !== null)
      console.error(`warning: the load of this machine cannot be measured: ${machine.load.problem}`);
    if (isBusy(machine.load))
      console.log(
        `this machine is busy: ${loadText(machine.load)}. The certifier waits longer, and does not blame the app for what is late`,
      );
    console.log(
      `${chosen.length} ${chosen.length === 1 ? 'scenario' : 'scenarios'} side by side; the app polls in real seconds, so this takes a while\n`,
    );
    const startedAt = new Date();
    const reports = await runPlan(chosen, {
      ...options,
      ...(drawn ? { users: drawn.challenge.users, items } : {}),
      sandbox,
      launchUrl,
      tokenField: profile.launchTokenField,
      startRequest,
      machine: machine.load,
      // After a restart another process is the app.
      ...(app && restartCommand === null && { app }),
      signal: interruption.signal,
      onStatus: (scenario, status) =>
        status !== 'RUNNING' &&
        console.log(`${status.toLowerCase().padEnd(11)} ${scenario.id.padEnd(22)} ${scenario.title}`),
    });
    const summary = summarize(reports, {
      app: launchUrl,
      planVersion,
      limits: profile.limits,
      startedAt,
      finishedAt: new Date(),
      expected,
      challenge: drawn?.challenge ?? null,
      permissions: sandbox.platform.permissionsOf(apiKey),
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

/** Body of the run that the app is tried with. */
async function trialBody(definition: AppDefinition, { challenge }: CertifyOptions): Promise<string> {
  const { trialRun } = await import('./trial-run.ts');
  return JSON.stringify(trialRun(definition, trialSide, challenge === null ? null : placeholder));
}

function readExpected(path: string): Promise<ExpectedFailure[]> {
  return readJson(
    path,
    z.array(z.strictObject({ scenario: z.string(), rule: z.string() })),
    'JSON such as [{"scenario": "chunk-cut", "rule": "chunk-order"}]; "*" stands for any scenario, "outcome" for what did not come',
  );
}

interface StartOptions {
  readonly sandbox: Awaited<ReturnType<typeof startOwnSandbox>>;
  /** Folder for data of the reference app. */
  readonly folder: string;
  readonly definition: AppDefinition | null;
  /** Body of the run that the reference app is tried with. */
  readonly trial: string | null;
  /** Receives the stop of what was started, first. */
  readonly stops: (() => Promise<unknown>)[];
  readonly signal: AbortSignal;
}

/** Starts the app under test, or waits for one that its user starts. */
async function startApp(
  options: CertifyOptions,
  { sandbox, folder, definition, trial, stops, signal }: StartOptions,
): Promise<{ readonly launchUrl: string; readonly startRequest: StartRequest | null; readonly app?: AppUnderTest }> {
  const { startCommand, startRequest } = options;
  if (startCommand !== null) {
    const { launchUrl, app } = await startByCommand(startCommand, options.launchUrl, sandbox, { stops, signal });
    return { launchUrl, startRequest, app };
  }
  if (options.launchUrl !== null) {
    if (sandbox.isKeyMade)
      console.log(
        `api key ${sandbox.apiKey}\n  made because SANDBOX_API_KEY is not set; give the app under test this key and the address ${sandbox.url}`,
      );
    await waitForApp(options.launchUrl, signal);
    return { launchUrl: options.launchUrl, startRequest };
  }
  const app = await startService('app', [], {
    PLATFORM_URL: sandbox.url,
    PLATFORM_API_KEY: sandbox.apiKey,
    APP_SECRET: randomBytes(32).toString('base64url'),
    DATA_DIR: join(folder, 'app'),
    UPLOAD_PART_BYTES: '20000',
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'error',
  });
  stops.unshift(() => app.stop());
  console.log(`${(definition?.id ?? 'app').padEnd(18)} ${app.url}`);
  return {
    launchUrl: `${app.url}/launch`,
    startRequest: startRequest ?? { method: 'POST', path: 'api/runs', body: trial },
  };
}

/** By a shell, as its user wrote it. Throws `KitError` where it fails: nothing is said of the app then. */
async function restartApp(command: string, signal: AbortSignal): Promise<void> {
  // A group of its own: what the shell has started ends with it.
  const child = spawn(command, { shell: true, stdio: ['ignore', 'ignore', 'inherit'], detached: true });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(restartMs)]);
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  limit.addEventListener('abort', end, { once: true });
  // Node passes the exit code first, or null; `once` does not say so.
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
