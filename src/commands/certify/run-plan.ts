import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { sandboxCall, type SandboxAddress } from '../../testing/sandbox-call.ts';
import type { AppUnderTest } from './app-under-test.ts';
import type { BroughtItem } from './challenge-items.ts';
import { Browser, OpenError } from './browser.ts';
import type { Challenge } from './challenge.ts';
import type { CertifyOptions, StartRequest } from './options.ts';
import { digestOfTrace, mergeRules, resultOfScenario, type ScenarioReport, type Status } from './report.ts';
import type { Scenario } from './scenarios.ts';
import { isBusy, loadText, type MachineLoad } from './machine.ts';
import { MachineTooBusy, NotSeen, WatchedLaunch } from './watched-launch.ts';

export interface PlanOptions {
  readonly sandbox: SandboxAddress;
  readonly launchUrl: string;
  readonly launchMode: CertifyOptions['launchMode'];
  /** The form field of a launch by form. */
  readonly tokenField: string;
  readonly startRequest: StartRequest | null;
  readonly patienceMs: number;
  /** Load of the machine that the app runs on. Default: idle. */
  readonly machine?: Pick<MachineLoad, 'slowdown'>;
  /** The app that the certifier started. Default: somebody else started it. */
  readonly app?: Pick<AppUnderTest, 'endedWith'>;
  /** Items that replace `{collectionId}` and `{itemId}` in the start request. Default: nothing replaces them. */
  readonly items?: readonly BroughtItem[];
  /** Users who launch the app. Default: the sandbox's own users. */
  readonly users?: Challenge['users'];
  /** Ends the plan early: what runs is INTERRUPTED. */
  readonly signal: AbortSignal;
  /** Receives the status of each scenario as it changes. */
  readonly onStatus: (scenario: Scenario, status: Status) => void;
}

const idle = { slowdown: 1 };
const ofSomebodyElse = { endedWith: null };
/** Time limit for an answer of a page of the app. */
const longestAnswerMs = 30_000;
const appId = 'under-test';
/** A launch that failed on the app's or the platform's side is opened again, as its user would. */
const openTries = 3;

/** Runs the scenarios side by side, each in launches of its own with their own clock and faults. */
export async function runPlan(scenarios: readonly Scenario[], options: PlanOptions): Promise<ScenarioReport[]> {
  const { launchUrl, launchMode } = options;
  await sandboxCall(options.sandbox, 'registerApp', {
    body: { id: appId, name: 'App under test', launchUrl, launchMode },
  });
  for (const user of options.users ?? []) await sandboxCall(options.sandbox, 'registerUser', { body: user });
  const known = (await sandboxCall(options.sandbox, 'listUsers', {})).users;
  const { users: own } = options;
  const users = own ? known.filter(({ email }) => own.some((user) => user.email === email)) : known;
  const run = (some: readonly Scenario[]) =>
    Promise.all(
      some.map((scenario) =>
        runScenario(
          scenario,
          users.map(({ id }) => id),
          options,
        ),
      ),
    );
  const reports = await run(scenarios.filter(({ isAlone = false }) => !isAlone));
  for (const scenario of scenarios.filter(({ isAlone = false }) => isAlone)) reports.push(...(await run([scenario])));
  return reports;
}

async function runScenario(
  scenario: Scenario,
  userIds: readonly string[],
  options: PlanOptions,
): Promise<ScenarioReport> {
  await sleep(scenario.startMs ?? 0, undefined, { signal: options.signal }).catch(() => {});
  options.onStatus(scenario, 'RUNNING');
  const launches: WatchedLaunch[] = [];
  let appName: string | null = null;
  let missing: ScenarioReport['missing'] = null;
  let status: Status = 'FINISHED';
  try {
    const { launches: count = 1, user = 0, item = 0 } = scenario;
    const users = Array.from({ length: count }, (_, i) => userIds[(user + i) % userIds.length] ?? '');
    const startRequest = startOn(options.startRequest, options.items?.[item]);
    const ends = await Promise.allSettled(
      users.map(async (userId) => {
        const { launch, launchUrl, token } = await prepare(scenario, userId, options);
        launches.push(launch);
        appName =
          (await open(launchUrl, options.launchMode === 'form_post' ? token : null, { ...options, startRequest })) ??
          appName;
        await scenario.act(launch);
      }),
    );
    // Each to its end: what one launch lacks must not cut the other one's verdict short.
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  } catch (error) {
    if (options.signal.aborted) status = 'INTERRUPTED';
    // A failure of the certifier itself says nothing about the app.
    else if (isOwnFailure(error)) [status, missing] = ['INTERRUPTED', { severity: 'warning', message: error.message }];
    else if (error instanceof OpenError && error.isTimeout && isBusy(options.machine ?? idle)) {
      const message = `${error.message}. This proves nothing, because the machine was too busy: ${loadText(options.machine ?? idle)}`;
      [status, missing] = ['INTERRUPTED', { severity: 'warning', message }];
    }
    // A step that the sandbox refuses, such as an approval that came too late for it, says something of this scenario only.
    else if (error instanceof NotSeen || error instanceof OpenError || error instanceof KitError)
      missing = { severity: scenario.missing, message: error.message };
    else throw error;
  }
  const report = await judge(scenario, launches, { status, missing, appName }, options);
  options.onStatus(scenario, status);
  return report;
}

/** True for a failed restart, for a 5xx response of the sandbox, and for a machine that is too busy. */
const isOwnFailure = (error: unknown): error is Error =>
  error instanceof MachineTooBusy ||
  (error instanceof KitError &&
    (error.code === 'restart_failed' || (error.code === 'sandbox_error' && error.status >= 500)));

/** With the item's names in place of `{collectionId}` and `{itemId}`. */
function startOn(request: StartRequest | null, item: BroughtItem | undefined): StartRequest | null {
  if (request === null || item === undefined) return request;
  const filled = (text: string) =>
    text.replaceAll('{collectionId}', item.collectionId).replaceAll('{itemId}', item.itemId);
  return { ...request, path: filled(request.path), body: request.body === null ? null : filled(request.body) };
}

async function prepare(
  scenario: Scenario,
  userId: string,
  options: PlanOptions,
): Promise<{ launch: WatchedLaunch; launchUrl: string; token: string }> {
  const { launchId, launchUrl, token } = await sandboxCall(options.sandbox, 'launch', {
    body: { appId, userId, renewPolicy: scenario.renewPolicy ?? 'extend' },
  });
  const launch = new WatchedLaunch(launchId, { machine: idle, app: ofSomebodyElse, ...options });
  if (scenario.tokenAgeMs) await launch.advance(scenario.tokenAgeMs);
  for (const { endpoint, effect, after, times } of scenario.faults ?? [])
    await launch.arm(endpoint, effect, { after, times });
  return { launch, launchUrl, token };
}

async function open(
  launchUrl: string,
  token: string | null,
  {
    startRequest,
    tokenField,
    patienceMs,
    signal,
  }: Pick<PlanOptions, 'startRequest' | 'tokenField' | 'patienceMs' | 'signal'>,
): Promise<string | null> {
  for (let tries = 1; ; tries++) {
    try {
      const browser = new Browser(signal, tokenField, Math.min(longestAnswerMs, patienceMs));
      const home = await browser.open(launchUrl, token);
      if (startRequest) await browser.start(home, startRequest);
      return browser.appName;
    } catch (error) {
      if (!(error instanceof OpenError) || (error.status ?? 500) < 500 || tries === openTries) throw error;
    }
  }
}

async function judge(
  scenario: Scenario,
  launches: readonly WatchedLaunch[],
  { status, missing, appName }: Pick<ScenarioReport, 'status' | 'missing' | 'appName'>,
  { sandbox }: PlanOptions,
): Promise<ScenarioReport> {
  const traces = await Promise.all(
    launches.map(async (launch) => ({ launchId: launch.id, ...(await launch.trace()), acts: launch.acts })),
  );
  const verdicts = await Promise.all(launches.map((launch) => launch.verdict()));
  const rules = mergeRules(verdicts);
  const { faults: there } = await sandboxCall(sandbox, 'listFaults', {});
  const faults = launches.flatMap(({ armed }) =>
    armed.map(({ id, endpoint, effect, times }) => ({
      endpoint,
      effect,
      times,
      // A fault that was removed counts as never fired.
      fired: there.find((fault) => fault.id === id)?.fired ?? 0,
    })),
  );
  return {
    id: scenario.id,
    title: scenario.title,
    level: scenario.level,
    appName,
    status,
    result: status === 'FINISHED' ? resultOfScenario({ rules, missing, faults }) : 'NOT_EXERCISED',
    missing,
    faults,
    rules,
    advisories: mergeRules(verdicts, 'advisories'),
    launches: traces.map(({ launchId, calls, total, acts }, i) => ({
      launchId,
      sha256: digestOfTrace(calls),
      calls,
      acts,
      cutCalls: (verdicts[i]?.cutCalls ?? 0) + total - calls.length,
    })),
  };
}
