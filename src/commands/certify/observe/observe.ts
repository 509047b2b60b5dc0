import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { assumedProfile, KitError } from '../../../contract/index.ts';
import { readPort, readSecret } from '../../../sandbox/config.ts';
import { isOk } from '../../../sandbox/referee/traced-call.ts';
import { callerFolder } from '../../arguments.ts';
import { onInterrupt } from '../../command.ts';
import { requireWritable } from '../../files.ts';
import { ownApp } from '../../own-app.ts';
import { readWireProfile } from '../../wire-profile.ts';
import { startByCommand, waitForApp } from '../app-under-test.ts';
import { Browser } from '../browser.ts';
import type { ObserveOptions } from '../options.ts';
import { tableOf, writeReports } from '../outputs.ts';
import { driftRecordOf } from './drift-record.ts';
import { Observation } from './observation.ts';
import type { ObservedCall } from './observed-call.ts';
import { launchesOf } from './observed-launches.ts';
import { startReferee } from './referee-server.ts';

const lookEveryMs = 500;
/** Time limit for an answer of a page of the app. */
const longestAnswerMs = 30_000;
/** Time after the end of a launch in which the app might still call. */
const quietMs = 10_000;

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
  const interruption = new AbortController();
  const { signal } = interruption;
  onInterrupt(() => interruption.abort(new KitError('interrupted', 'interrupted')));
  const observation = new Observation(profile, (call) => console.log(lineOf(call)));
  const host = process.env['HOST'] ?? '127.0.0.1';
  const served = await startReferee({ upstream: upstream.href, host, port: readPort(options.port) }, (passed) =>
    observation.note(passed),
  );
  const stops: (() => Promise<unknown>)[] = [];
  try {
    console.log(`referee ready ${served.url}\nin front of ${upstream.href}`);
    let { launchUrl } = options;
    let appName: string | null = null;
    let isEnded = () => false;
    if (options.startCommand !== null && apiKey !== null) {
      const platform = { url: served.url, apiKey };
      const started = await startByCommand(options.startCommand, launchUrl, platform, { stops, signal });
      ({ launchUrl } = started);
      isEnded = () => started.app.endedWith !== null;
    }
    if (launchUrl !== null && token !== null) {
      await waitForApp(launchUrl, signal, `: start it with ${served.url} as its PLATFORM_URL`);
      const browser = new Browser(signal, profile.launchTokenField, longestAnswerMs);
      const home = await browser.open(...addressOf(launchUrl, token, options.launchMode, profile.launchTokenField));
      if (options.startRequest) await browser.start(home, options.startRequest);
      ({ appName } = browser);
      isEnded = either(isEnded, () => isOver(observation));
    } else
      console.log(
        `give the app this address as its PLATFORM_URL, with its own API key, and launch it from the platform${launchUrl === null ? '' : ` (${launchUrl})`}. Ctrl-C ends, and judges`,
      );
    while (!signal.aborted && !isEnded() && Date.now() - observation.lastAt < (options.idleMs ?? Infinity))
      await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
    return await judged(observation, served, { ...options, launchUrl, appName });
  } catch (error) {
    if (!signal.aborted) throw error;
    return await judged(observation, served, { ...options, appName: null });
  } finally {
    for (const stop of stops) await stop();
    await served.close();
  }
}

const either = (a: () => boolean, b: () => boolean) => () => a() || b();

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

/** True if each operation has its decision, each approved one its file, and the app has been quiet since. */
function isOver({ calls, lastAt }: Observation): boolean {
  if (Date.now() - lastAt < quietMs) return false;
  const of = (name: ObservedCall['name']) => calls.filter((call) => call.name === name && isOk({ ...call, id: 0 }));
  const statuses = of('getOperation');
  const files = of('completeUpload').length;
  const ids = new Set(of('createOperation').map(({ detail }) => detail.operationId));
  const last = [...ids].map(
    (id) => statuses.findLast(({ detail }) => detail.operationId === id)?.detail.operationStatus,
  );
  const approved = last.filter((status) => status === 'APPROVED').length;
  return ids.size > 0 && last.every((status) => status !== undefined && status !== 'REQUESTED') && files >= approved;
}

async function judged(
  observation: Observation,
  served: Awaited<ReturnType<typeof startReferee>>,
  options: ObserveOptions & { readonly appName: string | null },
): Promise<number> {
  const { launchUrl, upstream, recordFile } = options;
  // What is under way ends, and is judged as it ended.
  await served.close();
  const report = await observation.report(launchUrl ?? 'an app', upstream.href, options.appName);
  const { calls, unjudged } = observation;
  const unreadable = Map.groupBy(
    calls.filter((call) => call.unreadable !== null),
    (call) => `${call.name}: ${call.unreadable}`,
  );
  console.log(`\n${tableOf(report)}`);
  for (const [text, own] of unreadable)
    console.log(`the wire profile cannot read ${own.length === 1 ? 'an answer' : `${own.length} answers`} of ${text}`);
  if (unjudged > 0) console.log(`${unjudged} further calls passed, and were not judged: too many are kept already`);
  await writeReports(report, { ...options, badgeFile: null });
  if (recordFile !== null) {
    const record = { format: 'marketplace-drift-record/1', ...driftRecordOf(calls) };
    await writeFile(recordFile, `${JSON.stringify(record, null, 2)}\n`);
    console.log(`record: ${recordFile}`);
  }
  if (launchesOf(calls).length === 0) {
    console.log(
      'no call with an identity token came, so nothing was judged: is the referee the PLATFORM_URL of the app?',
    );
    return 1;
  }
  return report.result === 'FAILED' ? 1 : 0;
}

const lineOf = ({ at, endpoint, status, delivered, detail }: ObservedCall): string => {
  const answer = status === null ? 'no answer' : `${status}${delivered ? '' : ', not received'}`;
  const what = [detail.operationStatus, detail.partNumber === undefined ? undefined : `part ${detail.partNumber}`];
  return [new Date(at).toISOString().slice(11, 19), endpoint.padEnd(18), answer, ...what.filter(Boolean)].join('  ');
};
