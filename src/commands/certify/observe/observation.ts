import { assumedProfile, KitError, type WireProfile } from '../../../contract/index.ts';
import { isComplete, isOk } from '../../../sandbox/referee/traced-call.ts';
import { judge, nothingMissing, rulesOf } from '../../../sandbox/referee/verdict.ts';
import { digestOfTrace, mergeRules, resultOfScenario, summarize, type Report, type ScenarioReport } from '../report.ts';
import type { PassedCall } from './forward.ts';
import { CallReader, type ObservedCall } from './observed-call.ts';
import { launchesOf, viewOf, type ObservedLaunch } from './observed-launches.ts';

/** Plan of a report of launches that nobody led. */
const observedPlan = 'observed/1';

/** Calls that are kept. Later ones pass unjudged, and the report says how many. */
const maxCalls = 200_000;
const maxKinds = 100;

/** Judges the launches whose calls pass between an app and a platform. */
export class Observation {
  readonly calls: ObservedCall[] = [];
  /** Calls that came when no more were kept. */
  unjudged = 0;
  /** When the last call began or was over; epoch milliseconds. */
  lastAt = Date.now();
  /** Calls that have begun and are not over. */
  underWay = 0;
  /** Requests that are no call of the profile, by method and status. */
  readonly unknown = new Map<string, number>();
  #profile: WireProfile;
  #startedAt = new Date();
  #reader: CallReader;

  /** `onCall` receives each call that the profile knows. Throws `KitError` for a profile that exists only as code. */
  constructor(profile: WireProfile, onCall: (call: ObservedCall) => void = () => {}) {
    if (profile.changes === null && profile !== assumedProfile)
      throw new KitError(
        'bad_wire_profile',
        `the referee cannot read the wire profile ${profile.name}: it exists only as code. Make it with wireProfile({...}), which describes the differences as data`,
      );
    this.#profile = profile;
    const keep = (call: ObservedCall) => {
      if (this.calls.length < maxCalls) this.calls.push(call);
      else this.unjudged += 1;
      onCall(call);
    };
    this.#reader = new CallReader(profile, keep, ({ method, answer }) => {
      const kind = `${method} ${answer?.status ?? 'without an answer'}`;
      if (this.unknown.size < maxKinds) this.unknown.set(kind, (this.unknown.get(kind) ?? 0) + 1);
    });
  }

  /** A call has begun. */
  begin(): void {
    this.lastAt = Date.now();
    this.underWay += 1;
  }

  note(passed: PassedCall): void {
    this.lastAt = Date.now();
    this.underWay -= 1;
    this.#reader.read(passed);
  }

  /** Reads the remaining calls, and judges. `app` is its launch address, or another text about it. */
  async report(app: string, platform: string, appName: string | null): Promise<Report> {
    await this.#reader.settled();
    const scenarios = launchesOf(this.calls).map((launch, i) => this.#scenarioOf(launch, `launch-${i + 1}`, appName));
    return {
      ...summarize(scenarios, {
        ...{ app, planVersion: observedPlan, limits: this.#profile.limits, expected: [], plan: [] },
        ...{ startedAt: this.#startedAt, finishedAt: new Date() },
      }),
      platform,
      level: null,
    };
  }

  #scenarioOf({ calls, isWhole }: ObservedLaunch, id: string, appName: string | null): ScenarioReport {
    // A launch whose beginning is missing is judged like one whose first calls were deleted.
    const cutCalls = this.unjudged > 0 || isWhole ? this.unjudged : 1;
    // The content of an unread call is missing like a lost call.
    const gaps = calls.filter(({ observed }) => observed.isUnread).map(({ at }) => at);
    const verdict = judge(calls, { ...nothingMissing, cutCalls, gaps }, rulesOf(this.#profile.limits));
    const verdicts = [{ launchId: id, appId: '', ...verdict }];
    const rules = mergeRules(verdicts);
    const missing = isWhole ? missingIn(calls) : beganUnseen;
    const views = calls.map((call) => viewOf(call, (text) => this.#reader.isSecret(text)));
    return {
      ...{ id, title: 'a launch in front of the platform', level: 'protocol', appName, status: 'FINISHED' },
      ...{ result: resultOfScenario({ rules, missing, faults: [] }), missing, faults: [], rules },
      advisories: mergeRules(verdicts, 'advisories'),
      launches: [{ launchId: id, sha256: digestOfTrace(views), calls: views, acts: [], cutCalls: this.unjudged }],
    };
  }
}

const beganUnseen = {
  severity: 'warning',
  message:
    'an operation or an upload of the launch began unseen, before the referee started or in an answer that it could not read, so only what the other calls prove is judged',
} as const;

/** An approved operation of which no file came. The referee may have ended too early, so it is a warning. */
function missingIn(calls: ObservedLaunch['calls']): ScenarioReport['missing'] {
  const approved = new Set(
    calls.flatMap(({ detail }) => (detail.operationStatus === 'APPROVED' ? (detail.operationId ?? []) : [])),
  );
  for (const call of calls)
    if (isComplete(call) && isOk(call) && !call.observed.isUnfinished) approved.delete(call.detail.operationId ?? '');
  const last = calls.at(-1);
  if (approved.size === 0 || last === undefined) return null;
  const answer = last.delivered ? `answered ${last.status}` : 'not answered';
  return {
    severity: 'warning',
    message: `no file was completed for an approved operation. The last call was ${last.endpoint}, ${answer}`,
  };
}
