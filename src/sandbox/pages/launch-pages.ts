import { Router, urlencoded } from 'express';
import { externalAppEndpoints } from '../../contract/index.ts';
import { iso } from '../clock.ts';
import { newFault, type Faults } from '../control/faults.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Launch } from '../marketplace/launch.ts';
import { timelineOf } from '../referee/timeline.ts';
import type { Trace } from '../referee/trace.ts';
import { judge, type Verdict } from '../referee/verdict.ts';
import type { UploadSessions } from '../uploads/upload-sessions.ts';
import { invalid, parseValues } from '../web/sandbox-error.ts';
import { viewOperation, type ApprovalOptions } from './approval-pages.ts';

const form = urlencoded({ extended: false, limit: '16kb' });
const mostLaunches = 100;
const mostCalls = 300;
/** What the page offers to arm, by name. */
const effects: Readonly<Record<string, object>> = {
  'answer 500': { status: 500 },
  'answer 503, Retry-After 2': { status: 503, retryAfterSeconds: 2 },
  'slow by 3 s': { delayMs: 3_000 },
  'cut the connection': { reset: true },
  'lose the answer': { dropResponse: true },
};

export interface LaunchPagesOptions extends ApprovalOptions {
  readonly trace: Trace;
  readonly faults: Faults;
  readonly tokens: IdentityTokens;
  readonly uploadSessions: UploadSessions;
  readonly afterClockMoved: () => Promise<void>;
  readonly reset: () => Promise<void>;
}

/** `/launches`: the inspector. Each launch with its calls over time, the verdict, and clock and faults at hand. */
export function launchPages(options: LaunchPagesOptions): Router {
  const { launches, operations, apps, users, clock, trace, faults, tokens, uploadSessions, render } = options;
  const router = Router();
  const viewLaunch = (launch: Launch) => ({
    id: launch.id,
    app: apps.find(launch.appId)?.name ?? launch.appId,
    user: users.find(launch.userId)?.name ?? launch.userId,
    renewPolicy: launch.renewPolicy,
    createdAt: iso(launch.createdAtMs),
  });

  /** Verdicts as they were when a launch's newest call was the one that it still is. */
  const judged = new Map<string, { newestId: number; verdict: Verdict }>();
  function verdictOf(launchId: string): { verdict: Verdict; count: number } {
    const { count, newestId } = trace.extent(launchId);
    const known = judged.get(launchId);
    if (known?.newestId === newestId) return { verdict: known.verdict, count };
    const verdict = judge(trace.calls(launchId), trace.gaps());
    judged.delete(launchId);
    judged.set(launchId, { newestId, verdict });
    for (const oldest of judged.keys()) if (judged.size > mostLaunches) judged.delete(oldest);
    return { verdict, count };
  }

  router.get('/launches', (_req, res) => {
    const shown = launches.listNewest(mostLaunches).map((launch) => {
      const { verdict, count } = verdictOf(launch.id);
      return { ...viewLaunch(launch), calls: count, result: verdict.result, status: operations.latestOf(launch.id)?.status ?? null };
    });
    render(res, 'launches', { launches: shown, now: iso(clock.now()) });
  });

  router.get('/launches/:launchId', (req, res) => {
    const launch = launches.get(req.params.launchId);
    const { verdict, count } = verdictOf(launch.id);
    const calls = trace.list(launch.id, mostCalls);
    const broken = new Map(verdict.rules.flatMap(({ rule, violations }) => violations.flatMap((violation) => violation.calls.map(({ id }) => [id, rule] as const))));
    render(res, 'inspector', {
      launch: { ...viewLaunch(launch), now: iso(clock.now(launch.id)), tokenEndsAt: iso(tokens.expiryOf(launch.id)) },
      operations: operations.list(launch.id).map((operation) => viewOperation(operation, options)),
      uploads: uploadSessions.listByLaunch(launch.id).map((upload) => ({ ...upload, parts: uploadSessions.parts(upload.id) })),
      verdict,
      timeline: timelineOf(calls, verdict.rules),
      calls: calls.toReversed().map((call) => ({ ...call, breaks: broken.get(call.id) ?? null })),
      callCount: count,
      faults: faults.list().filter(({ launchId }) => launchId === null || launchId === launch.id),
      endpoints: externalAppEndpoints,
      effects: Object.keys(effects),
    });
  });

  router.post('/launches/:launchId/clock', form, async (req, res) => {
    const { id } = launches.get(String(req.params['launchId']));
    const minutes = Number((req.body as Record<string, unknown>)['minutes']);
    if (!(minutes > 0 && minutes <= 1_000_000)) throw invalid([{ path: 'minutes', message: 'must be more than 0 and at most 1,000,000' }]);
    clock.advance(Math.round(minutes * 60_000), id);
    await options.afterClockMoved();
    res.redirect(303, `/launches/${id}`);
  });
  router.post('/launches/:launchId/faults', form, (req, res) => {
    const { id } = launches.get(String(req.params['launchId']));
    const { endpoint, effect, after, times } = req.body as Record<string, unknown>;
    faults.arm(parseValues(newFault, { launchId: id, endpoint, effect: effects[String(effect)], after: Number(after), times: Number(times) }));
    res.redirect(303, `/launches/${id}`);
  });
  router.post('/launches/:launchId/revoke', (req, res) => {
    const { id } = launches.get(String(req.params['launchId']));
    launches.revoke(id);
    res.redirect(303, `/launches/${id}`);
  });
  router.post('/reset', async (_req, res) => {
    await options.reset();
    res.redirect(303, '/launches');
  });
  return router;
}
