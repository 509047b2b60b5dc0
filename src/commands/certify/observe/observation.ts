import { assumedProfile, KitError, type WireProfile } from '../../../contract/index.ts';
import { isOk } from '../../../sandbox/referee/traced-call.ts';
import { judge, nothingMissing, rulesOf } from '../../../sandbox/referee/verdict.ts';
import { digestOfTrace, mergeRules, resultOfScenario, summarize, type Report, type ScenarioReport } from '../report.ts';
import type { PassedCall } from './forward.ts';
import { CallReader, type ObservedCall } from './observed-call.ts';
import { launchesOf, viewOf, type ObservedLaunch } from './observed-launches.ts';

/** Plan of a report of launches that were observed and not led. */
export const observedPlan = 'observed/1';

/** Calls that are kept. Later ones pass unjudged, and the report says how many. */
const maxCalls = 200_000;

/** Judges the launches whose calls pass between an app and a platform. */
export class Observation {
  readonly calls: ObservedCall[] = [];
  /** Calls that came when no more were kept. */
  unjudged = 0;
  /** When the last call was over; epoch milliseconds. */
  lastAt = Date.now();
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
    this.#reader = new CallReader(profile, (call) => {
      if (this.calls.length < maxCalls) this.calls.push(call);
      else this.unjudged += 1;
      onCall(call);
    });
  }

  note(passed: PassedCall): void {
    this.lastAt = Date.now();
    this.#reader.read(passed);
  }

  /** Reads what is left, and judges. `app`: its launch address, or what is known of it. */
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
    const cutCalls = isWhole && this.unjudged === 0 ? 0 : Math.max(1, this.unjudged);
    const verdict = judge(calls, { ...nothingMissing, cutCalls }, rulesOf(this.#profile.limits));
    const verdicts = [{ launchId: id, appId: '', ...verdict }];
    const rules = mergeRules(verdicts);
    const missing = isWhole ? missingIn(calls) : beganBefore;
    const views = calls.map(viewOf);
    return {
      ...{ id, title: 'a launch in front of the platform', level: 'protocol', appName, status: 'FINISHED' },
      ...{ result: resultOfScenario({ rules, missing, faults: [] }), missing, faults: [], rules },
      advisories: mergeRules(verdicts, 'advisories'),
      launches: [{ launchId: id, sha256: digestOfTrace(views), calls: views, acts: [], cutCalls }],
    };
  }
}

const beganBefore = {
  severity: 'warning',
  message: 'the launch had begun before the referee saw it, so only what its calls prove is judged',
} as const;

/** An approved operation of which no file came. The referee may have ended too early, so it is a warning. */
function missingIn(calls: ObservedLaunch['calls']): ScenarioReport['missing'] {
  const approved = new Set(
    calls.flatMap(({ detail }) => (detail.operationStatus === 'APPROVED' ? (detail.operationId ?? []) : [])),
  );
  for (const call of calls)
    if (call.endpoint === 'upload.complete' && isOk(call)) approved.delete(call.detail.operationId ?? '');
  const last = calls.at(-1);
  if (approved.size === 0 || last === undefined) return null;
  const answer = last.delivered ? `answered ${last.status}` : 'not answered';
  return {
    severity: 'warning',
    message: `no file was completed for an approved operation. The last call was ${last.endpoint}, ${answer}`,
  };
}
