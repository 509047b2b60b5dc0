import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { assumedProfile, KitError, type WireProfile } from '../../../contract/index.ts';
import { readPort, readSecret } from '../../../sandbox/config.ts';
import { isComplete, isCreate, isInitiate, isOk } from '../../../sandbox/referee/traced-call.ts';
import { callerFolder } from '../../arguments.ts';
import { onInterrupt } from '../../command.ts';
import { requireWritable } from '../../files.ts';
import { ownApp } from '../../own-app.ts';
import { readWireProfile } from '../../wire-profile.ts';
import { startByCommand, waitForApp } from '../app-under-test.ts';
import { Browser, OpenError } from '../browser.ts';
import type { ObserveOptions } from '../options.ts';
import { tableOf, writeReports } from '../outputs.ts';
import { driftRecordOf } from './drift-record.ts';
import { Observation } from './observation.ts';
import type { ObservedCall } from './observed-call.ts';
import { startReferee } from './referee-server.ts';

const lookEveryMs = 500;
/** Time limit for an answer of a page of the app. */
const longestAnswerMs = 30_000;
/** Time after the end of a launch in which the app might still call. */
const quietMs = 10_000;

type Referee = Awaited<ReturnType<typeof startReferee>>;

/** Facts about the app. Some are known only after the launch. */
interface App {
  launchUrl: string | null;
  /** Name on the page of the launch. */
  name: string | null;
  /** Reason why the launch failed. Null if it did not. */
  problem: string | null;
}

/** Stands between an app and a platform until its user ends it. Returns the exit status of the command. */
export async function observe(options: ObserveOptions): Promise<number> {
  const { jsonFile, junitFile, htmlFile, recordFile, upstream } = options;
  for (const file of [jsonFile, junitFile, htmlFile, recordFile]) if (file !== null) await requireWritable(file);
  const profile =
    options.profileFile === null
      ? ((await ownApp())?.profile ?? assumedProfile)
      : await readWireProfile(options.profileFile, callerFolder());
  const token = readSecret(process.env, 'PLATFORM_TOKEN');
  const apiKey = readSecret(process.env, 'PLATFORM_API_KEY');
  if (options.startCommand !== null && apiKey === null)
    throw new KitError(
      'bad_arguments',
      '--start needs PLATFORM_API_KEY (or PLATFORM_API_KEY_FILE), the key that the platform issued to you: the app gets it',
    );
  // The report contains the address.
  if (options.launchUrl !== null && new URL(options.launchUrl).searchParams.has(profile.launchTokenField))
    throw new KitError(
      'bad_arguments',
      `--launch-url must be the address without ?${profile.launchTokenField}=: give the token in PLATFORM_TOKEN`,
    );
  const interruption = new AbortController();
  onInterrupt(() => interruption.abort(new KitError('interrupted', 'interrupted')));
  const observation = new Observation(profile, (call) => console.log(lineOf(call)));
  const host = process.env['HOST'] ?? '127.0.0.1';
  const referee = await startReferee(
    { upstream: upstream.href, host, port: readPort(options.port) },
    {
      onBegun: () => observation.begin(),
      onPassed: (passed) => observation.note(passed),
      onFailed(error) {
        console.error(`the referee failed and forwards nothing more: ${error.message}`);
        interruption.abort(error);
      },
    },
  );
  const app: App = { launchUrl: options.launchUrl, name: null, problem: null };
  const stops: (() => Promise<unknown>)[] = [];
  try {
    console.log(`referee ready ${referee.url}\nin front of ${upstream.href}`);
    await watch(observation, referee, app, { ...options, profile, token, apiKey, stops, signal: interruption.signal });
  } catch (error) {
    if (error instanceof OpenError) app.problem = error.message;
    else if (!interruption.signal.aborted) throw error;
  } finally {
    for (const stop of stops) await stop();
    // Calls under way end, and are judged as they ended.
    await referee.close();
  }
  return judged(observation, app, options);
}

interface WatchOptions extends ObserveOptions {
  readonly profile: WireProfile;
  readonly token: string | null;
  readonly apiKey: string | null;
  /** Receives the stop of what was started. */
  readonly stops: (() => Promise<unknown>)[];
  readonly signal: AbortSignal;
}

/** Starts and opens the app, if it can, and resolves when there is nothing more to see. Throws `OpenError` and `KitError`. */
async function watch(
  observation: Observation,
  { url }: Referee,
  app: App,
  { startCommand, launchMode, startRequest, idleMs, profile, token, apiKey, stops, signal }: WatchOptions,
): Promise<void> {
  let endedWith: () => string | null = () => null;
  if (startCommand !== null && apiKey !== null) {
    const started = await startByCommand(startCommand, app.launchUrl, { url, apiKey }, { stops, signal });
    app.launchUrl = started.launchUrl;
    endedWith = () => started.app.endedWith;
  }
  const isOpened = app.launchUrl !== null && token !== null;
  if (app.launchUrl !== null && token !== null) {
    await waitForApp(app.launchUrl, signal, `: start it with ${url} as its PLATFORM_URL`);
    const browser = new Browser(signal, profile.launchTokenField, longestAnswerMs);
    const home = await browser.open(...addressOf(app.launchUrl, token, launchMode, profile.launchTokenField));
    app.name = browser.appName;
    if (startRequest) await browser.start(home, startRequest);
  } else {
    const advice = startCommand === null ? 'give the app this address as its PLATFORM_URL, with its own API key, and launch' : 'launch'; // oxfmt-ignore
    console.log(
      `${advice} it from the platform${app.launchUrl === null ? '' : ` (${app.launchUrl})`}. Ctrl-C ends, and judges`,
    );
    if (token !== null) console.log('PLATFORM_TOKEN is not used, because no --launch-url and no --start names the app');
  }
  const isIdle = () => observation.underWay === 0 && Date.now() - observation.lastAt >= (idleMs ?? Infinity);
  while (!signal.aborted && endedWith() === null && !isIdle() && !(isOpened && isOver(observation)))
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  const how = endedWith();
  if (how !== null) app.problem = `the app ended by itself (${how}) before its launch was over`;
}

/** Arguments of a browser that opens the launch as the platform would. */
function addressOf(
  launchUrl: string,
  token: string,
  mode: ObserveOptions['launchMode'],
  field: string,
): [launchUrl: string, token: string | null] {
  if (mode === 'form_post') return [launchUrl, token];
  const address = new URL(launchUrl);
  address.searchParams.set(field, token);
  return [address.href, null];
}

/** True if each operation has its decision, each approved one a file and each upload its end, and the app has been quiet since. */
function isOver({ calls, lastAt, underWay }: Observation): boolean {
  if (underWay > 0 || Date.now() - lastAt < quietMs) return false;
  const answered = calls.filter((call) => !call.isUnfinished && isOk(call));
  const statuses = answered.filter(({ detail }) => detail.operationStatus !== undefined);
  const ids = new Set(answered.filter(isCreate).map(({ detail }) => detail.operationId));
  const last = [...ids].map(
    (id) => statuses.findLast(({ detail }) => detail.operationId === id)?.detail.operationStatus,
  );
  const approved = last.filter((status) => status === 'APPROVED').length;
  const completed = new Set(answered.filter(isComplete).map(({ detail }) => detail.uploadId));
  const areComplete = answered.filter(isInitiate).every(({ detail }) => completed.has(detail.uploadId));
  const isDecided = ids.size > 0 && last.every((status) => status !== undefined && status !== 'REQUESTED');
  return isDecided && areComplete && completed.size >= approved;
}

/** Judges, prints and writes what was seen. Returns the exit status. */
async function judged(observation: Observation, app: App, options: ObserveOptions): Promise<number> {
  const { upstream, recordFile } = options;
  const report = await observation.report(app.launchUrl ?? 'an app', upstream.href, app.name);
  const { calls, unjudged, unknown } = observation;
  console.log(`\n${tableOf(report)}`);
  const unreadable = Map.groupBy(
    calls.filter((call) => call.unreadable !== null),
    (call) => `${call.name}: ${call.unreadable}`,
  );
  for (const [text, own] of unreadable)
    console.log(`the wire profile cannot read ${own.length === 1 ? 'an answer' : `${own.length} answers`} of ${text}`);
  if (unknown.size > 0)
    console.log(
      `requests that the wire profile does not know passed unjudged: ${[...unknown].map(([kind, count]) => `${kind} (${count})`).join(', ')}`,
    );
  if (unjudged > 0) console.log(`${unjudged} further calls passed unjudged, because too many are kept already`);
  await writeReports(report, { ...options, badgeFile: null });
  if (recordFile !== null) {
    const record = { format: 'marketplace-drift-record/1', observed: true, ...driftRecordOf(calls) };
    await writeFile(recordFile, `${JSON.stringify(record, null, 2)}\n`);
    console.log(`record: ${recordFile}`);
  }
  if (app.problem !== null) console.log(app.problem);
  const hasLaunch = report.scenarios.length > 0;
  if (!hasLaunch)
    console.log(
      unknown.size > 0
        ? 'no call of a launch was recognized, so nothing was judged: give the wire profile of the platform with --profile'
        : 'no call came, so nothing was judged: is the referee the PLATFORM_URL of the app?',
    );
  return hasLaunch && app.problem === null && report.result !== 'FAILED' ? 0 : 1;
}

const lineOf = ({ at, endpoint, status, delivered, detail }: ObservedCall): string => {
  const answer = status === null ? 'no answer' : `${status}${delivered ? '' : ', not received'}`;
  const what = [detail.operationStatus, detail.partNumber === undefined ? undefined : `part ${detail.partNumber}`];
  return [new Date(at).toISOString().slice(11, 19), endpoint.padEnd(18), answer, ...what.filter(Boolean)].join('  ');
};
