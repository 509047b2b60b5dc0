import { Router, urlencoded } from 'express';
import * as z from 'zod';
import { type WireLimits, apiKeyHeader, externalAppEndpoints, endpoints } from '../../contract/index.ts';
import { iso, type SandboxClock } from '../clock.ts';
import { faultText, newFault, type FaultEffect } from '../call/fault.ts';
import type { Faults } from '../call/faults.ts';
import type { Operation } from '../external-app/operations.ts';
import type { Files } from '../uploads/files.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Launch } from '../identity/launch.ts';
import { spanText, type LaunchEvent, type LaunchEvents } from '../marketplace/launch-events.ts';
import { brokenCalls, timelineOf, type DrawnCause } from '../referee/timeline.ts';
import type { CallView, Trace } from '../referee/trace.ts';
import type { Verdict } from '../referee/verdict.ts';
import type { Verdicts } from '../referee/verdicts.ts';
import type { UploadSessions } from '../uploads/upload-sessions.ts';
import { fieldsOf } from '../web/form-body.ts';
import { SandboxError, invalid, parseValues } from '../web/sandbox-error.ts';
import { viewOperation, type ApprovalOptions } from './approval-pages.ts';
import { attemptWords, callRows } from './call-rows.ts';
import { compareLaunches } from './compare-launches.ts';
import { pageOf, withoutEmpty } from './list-page.ts';

const form = urlencoded({ extended: false, limit: '16kb' });
const launchesPerPage = 50;
const callsPerPage = 100;
const maxDrawn = 1_000;
const isOfLaunch = (endpoint: unknown): boolean => externalAppEndpoints.some((own) => own === endpoint);
/** Calls that belong to no launch, such as those of the catalog. */
const endpointsOfAll = endpoints.filter((endpoint) => !isOfLaunch(endpoint));
const maxOperations = 20;
/** Launches that the page offers for a comparison, the newest. */
const maxComparable = 20;
/** Drawn before a launch began, and after now. */
const lifeMarginMs = 60_000;
/** Faults that the page offers to arm. */
const effects: readonly FaultEffect[] = [
  { reset: true },
  { dropResponse: true },
  { status: 500 },
  { status: 503, retryAfterSeconds: 2 },
  { status: 429, retryAfterSeconds: 5 },
  { status: 403 },
  { delayMs: 3_000 },
  { status: 500, afterWork: true },
  { failWork: true },
];

/** Query of the inspector: which call stands in the pane, which are listed, what of the time is drawn. Times in epoch milliseconds. */
const inspectorQuery = z.object({
  call: z.coerce.number().int().optional(),
  endpoint: z.enum(endpoints).optional(),
  outcome: z.enum(['refused', 'lost', 'fault', 'breaks']).optional(),
  text: z.string().max(200).optional(),
  before: z.coerce.number().int().optional(),
  from: z.coerce.number().optional(),
  to: z.coerce.number().optional(),
  /** Present: faults and clock are open. */
  controls: z.string().optional(),
});

export interface LaunchPagesOptions extends ApprovalOptions {
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  readonly events: LaunchEvents;
  readonly faults: Faults;
  readonly tokens: IdentityTokens;
  readonly uploadSessions: UploadSessions;
  readonly files: Files;
  readonly publicUrl: () => string;
  readonly limits: Pick<WireLimits, 'operationWindowMs' | 'tokenLifetimeMs'>;
  readonly afterClockMoved: () => Promise<void>;
  readonly reset: () => Promise<void>;
  /** Removes keys and tokens. */
  readonly redact: <T>(value: T) => T;
}

/** `/launches`: the inspector. Each launch with its calls and what caused them over time, the verdict, and clock and faults at hand. */
export function launchPages(options: LaunchPagesOptions): Router {
  const { launches, operations, clock, trace, verdicts, render } = options;
  const router = Router();
  router.get('/launches', async (req, res) => {
    const { app } = withoutEmpty(req.query);
    const appId = options.apps.list().find(({ id }) => id === app)?.id ?? null;
    const page = pageOf(req.query, launches.count(appId), launchesPerPage);
    const newest = launches.listNewest(page.size, page.skip, appId);
    await verdicts.read(newest.map(({ id }) => id));
    const shown = newest.map((launch) => {
      const { verdict, count } = verdicts.of(launch.id);
      const operation = operations.latestOf(launch.id);
      return {
        ...viewLaunch(options, launch),
        calls: count,
        verdict: viewVerdict(verdict),
        status: operation?.status ?? null,
        operation: options.redact(operation?.name ?? null),
      };
    });
    render(res, 'launches', { launches: shown, page, appId, apps: options.apps.list(), now: iso(clock.now()) });
  });

  router.get('/launches/:launchId', async (req, res) => {
    const launch = launches.get(req.params.launchId);
    await verdicts.read([launch.id]);
    // The page ignores an invalid query from a hand-made address.
    const asked = inspectorQuery.safeParse(withoutEmpty(req.query)).data ?? {};
    render(res, 'inspector', inspectorView(options, launch, asked));
  });

  router.get('/requests/:requestId', (req, res) => {
    const call = trace.byRequest(req.params.requestId);
    if (!call) throw new SandboxError('request_not_found');
    res.redirect(302, `/launches/${call.launchId}?call=${call.id}#pane`);
  });

  router.get('/launches/:launchId/compare', async (req, res) => {
    const { with: other } = parseValues(z.object({ with: z.string() }), req.query);
    const pair = [req.params.launchId, other].map((id) => launches.get(id));
    await verdicts.read(pair.map(({ id }) => id));
    render(res, 'compare', {
      launches: pair.map((launch) => viewLaunch(options, launch)),
      ...compareLaunches(options, pair),
    });
  });

  offerControls(router, options);
  return router;
}

const viewLaunch = ({ apps, users }: Pick<LaunchPagesOptions, 'apps' | 'users'>, launch: Launch) => ({
  id: launch.id,
  appId: launch.appId,
  userId: launch.userId,
  app: apps.find(launch.appId)?.name ?? launch.appId,
  user: users.find(launch.userId)?.name ?? launch.userId,
  renewPolicy: launch.renewPolicy,
  createdAt: iso(launch.createdAtMs),
  isRevoked: launch.revokedAtMs !== null,
});

const viewVerdict = (verdict: Verdict) => ({
  ...verdict,
  exercised: verdict.rules.filter(({ result }) => result !== 'not_exercised').length,
});

const faultOf = ({ detail }: { detail: Readonly<Record<string, unknown>> }) =>
  // The sandbox itself has noted it.
  detail['fault'] ? faultText(detail['fault'] as FaultEffect) : null;

/** The data of the inspector's page. */
function inspectorView(options: LaunchPagesOptions, launch: Launch, asked: z.output<typeof inspectorQuery>): object {
  const { operations, clock, trace, verdicts, events, faults, tokens, uploadSessions } = options;
  const { verdict, count } = verdicts.of(launch.id);
  const broken = brokenCalls(verdict.rules);
  const { endpoint, outcome, text, before } = asked;
  const { total, calls } = trace.page(
    launch.id,
    { endpoint, text, before, ...(outcome === 'breaks' ? { among: [...broken.keys()] } : { outcome }) },
    callsPerPage,
  );
  const viewCall = (call: CallView) => ({ ...call, breaks: broken.get(call.id) ?? null, fault: faultOf(call) });
  const chosen = asked.call === undefined ? null : trace.find(launch.id, asked.call);
  // Texts from an app may hold a key, and people save this page and send it on.
  const shown = options.redact(operations.list(launch.id, maxOperations));
  const names = options.redact(operations.names(launch.id));
  const noted = events.list(launch.id);
  const window = windowOf(clock, noted, asked);
  const newest = trace.drawn(launch.id, 0, Number.MAX_SAFE_INTEGER, maxDrawn);
  const drawn = window ? trace.drawn(launch.id, window.fromMs, window.toMs, maxDrawn) : newest;
  const causes = causesOf(options, launch, noted, shown).filter(
    ({ at }) => !window || (Date.parse(at) >= window.fromMs && Date.parse(at) <= window.toMs),
  );
  const tokenEndsAtMs = tokens.expiryOf(launch.id);
  const newestLaunch = options.launches.newestOf(launch.appId);
  return {
    launch: {
      ...viewLaunch(options, launch),
      now: iso(clock.now(launch.id)),
      machineNow: iso(clock.machineNow()),
      aheadText:
        clock.now(launch.id) - clock.machineNow() > 500 ? spanText(clock.now(launch.id) - clock.machineNow()) : null,
      tokenEndsAt: iso(tokenEndsAtMs),
      isTokenOver: clock.now(launch.id) >= tokenEndsAtMs,
    },
    // It may be a repetition with the faults of this launch.
    newerLaunch: newestLaunch && newestLaunch.id !== launch.id ? newestLaunch.id : null,
    comparable: options.launches
      .listNewest(maxComparable + 1, 0)
      .filter(({ id }) => id !== launch.id)
      .map((other) => ({
        ...viewLaunch(options, other),
        operation: options.redact(operations.latestOf(other.id)?.name ?? null),
      })),
    // One minute past each limit.
    windowMinutes: Math.ceil(options.limits.operationWindowMs / 60_000) + 1,
    tokenMinutes: Math.ceil(options.limits.tokenLifetimeMs / 60_000) + 1,
    operations: shown.map((operation) => viewOperation(operation, options)),
    operationCount: names.length,
    uploads: uploadSessions
      .listByLaunch(launch.id)
      .map((upload) => ({ ...options.redact(upload), parts: uploadSessions.parts(upload.id) })),
    verdict: viewVerdict(verdict),
    timeline: timelineOf(drawn, verdict.rules, {
      causes,
      operations: new Map(
        names.map(({ id, name }, i) => [id, `${name}${names.length > 1 ? ` (${names.length - i})` : ''}`]),
      ),
      window,
      lanesOf: newest,
    }),
    drawnCount: drawn.length,
    causes,
    rows: callRows(calls.map(viewCall)).map(({ kind, calls: ofRow }) => ({
      kind,
      call: ofRow.at(-1),
      calls: ofRow,
      words: kind === 'attempts' ? attemptWords(ofRow) : '',
    })),
    oldestId: calls.at(-1)?.id ?? null,
    listedCount: calls.length,
    mayHaveOlder: calls.length === callsPerPage,
    chosen: chosen && { ...viewCall(chosen), curl: curlOf(options.publicUrl(), chosen) },
    callCount: count,
    total,
    asked,
    faults: faults
      .list()
      .filter(({ launchId }) => launchId === null || launchId === launch.id)
      .map((fault) => ({ ...fault, text: faultText(fault.effect) })),
    endpoints: { 'Of this launch': externalAppEndpoints, 'Of every launch': endpointsOfAll },
    effects: effects.map(faultText),
  };
}

/** Within the launch's life, whatever was asked for; undefined for all of it. */
function windowOf(
  clock: SandboxClock,
  noted: readonly LaunchEvent[],
  { from, to }: { from?: number | undefined; to?: number | undefined },
): { fromMs: number; toMs: number } | undefined {
  if (from === undefined || to === undefined || !(to > from)) return undefined;
  const begunMs = (noted[0]?.atMs ?? 0) - lifeMarginMs;
  const [fromMs, toMs] = [Math.max(begunMs, from), Math.min(clock.machineNow() + lifeMarginMs, to)];
  return toMs > fromMs ? { fromMs, toMs } : undefined;
}

/** Returns people's actions and the expiries: the end of an operation's window, and of the newest token. */
function causesOf(
  { events, tokens }: Pick<LaunchPagesOptions, 'events' | 'tokens'>,
  launch: Launch,
  noted: readonly LaunchEvent[],
  ofLaunch: readonly Operation[],
): DrawnCause[] {
  const tones: Partial<Record<LaunchEvent['kind'], DrawnCause['tone']>> = {
    approved: 'good',
    rejected: 'bad',
    revoked: 'bad',
    'fault armed': 'bad',
  };
  const done = noted.map(({ atMs, kind, text }): DrawnCause => ({
    at: iso(atMs),
    kind,
    text,
    tone: tones[kind] ?? 'plain',
  }));
  const expired = ofLaunch
    .filter(({ status }) => status === 'EXPIRED')
    .map(({ expiresAtMs, name }) => ({
      kind: 'expired',
      text: `${name}: nobody decided`,
      atMs: events.machineTimeOf(launch.id, expiresAtMs, noted),
    }));
  const ended =
    launch.revokedAtMs === null
      ? [
          {
            kind: 'token over',
            text: 'the newest token has ended',
            atMs: events.machineTimeOf(launch.id, tokens.expiryOf(launch.id), noted),
          },
        ]
      : [];
  const ofItself = [...expired, ...ended].flatMap(({ kind, text, atMs }): DrawnCause[] =>
    atMs === null ? [] : [{ at: iso(atMs), kind, text, tone: 'bad' }],
  );
  return [...done, ...ofItself].sort((a, b) => (a.at < b.at ? -1 : 1));
}

/** The call again, by hand. Key and token were never kept: they are the shell's. Everything else is the app's, and stays a word to the shell. */
function curlOf(platformUrl: string, { method, path, request }: CallView): string {
  const word = (value: string) => `'${value.replaceAll("'", "'\\''")}'`;
  const [before = '', after] = `${platformUrl}${path}`.split('{token}');
  const address = after === undefined ? word(before) : `${word(before)}"$IDENTITY_TOKEN"${word(after)}`;
  const type = request.headers['content-type'] ?? '';
  const isForm = type.startsWith('multipart/');
  const headers = Object.entries(request.headers).filter(
    ([name]) => name === 'idempotency-key' || (name === 'content-type' && !isForm),
  );
  const lines = [
    `curl -X ${method} ${address}`,
    `-H "${apiKeyHeader}: $API_KEY"`,
    ...headers.map(([name, value]) => `-H ${word(`${name}: ${value}`)}`),
  ];
  if (request.body)
    lines.push(
      // Fields of a form are texts.
      `--data ${word(type.startsWith('application/x-www-form-urlencoded') ? String(new URLSearchParams(request.body as Record<string, string>)) : JSON.stringify(request.body))}`,
    );
  if (isForm) lines.push('-F file=@part.bin  # and the other fields of the form');
  return lines.join(' \\\n  ');
}

/** The forms of a launch's page, and the reset of the sandbox. */
function offerControls(router: Router, options: LaunchPagesOptions): void {
  const { launches, operations, events, faults, render } = options;
  router.post('/launches/:launchId/clock', form, async (req, res) => {
    const { id } = launches.get(req.params['launchId']);
    const minutes = Number(fieldsOf(req)['minutes']);
    if (!(minutes > 0 && minutes <= 1_000_000))
      throw invalid([{ path: 'minutes', message: 'must be more than 0 and at most 1,000,000' }]);
    events.moveClock(id, Math.round(minutes * 60_000));
    await options.afterClockMoved();
    res.redirect(303, `/launches/${id}?controls=open#controls`);
  });
  router.post('/launches/:launchId/faults', form, (req, res) => {
    const { id } = launches.get(req.params['launchId']);
    const { endpoint, effect, after, times } = fieldsOf(req);
    faults.arm(
      parseValues(newFault, {
        ...(isOfLaunch(endpoint) && { launchId: id }),
        endpoint,
        effect: effects.find((choice) => faultText(choice) === effect),
        after: Number(after),
        times: Number(times),
      }),
    );
    res.redirect(303, `/launches/${id}?controls=open#controls`);
  });
  router.post('/launches/:launchId/faults/:faultId/disarm', (req, res) => {
    const { id } = launches.get(req.params['launchId']);
    faults.disarm(req.params['faultId']);
    res.redirect(303, `/launches/${id}?controls=open#controls`);
  });
  router.post('/launches/:launchId/revoke', (req, res) => {
    const { id } = launches.get(req.params['launchId']);
    launches.revoke(id);
    res.redirect(303, `/launches/${id}`);
  });
  router.get('/reset', (_req, res) =>
    render(res, 'reset', {
      launchCount: launches.count(),
      operationCount: operations.count(),
      fileCount: options.files.count(),
      faultCount: faults.list().length,
    }),
  );
  router.post('/reset', async (_req, res) => {
    await options.reset();
    res.redirect(303, '/launches');
  });
}
