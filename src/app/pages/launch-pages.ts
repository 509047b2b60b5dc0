import { Router, type RequestHandler } from 'express';
import { collectionOfUploads, OpenStreams, type CatalogItem, type WireProfile } from '../../contract/index.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import type { Launch, LaunchStore } from '../launch/launch-store.ts';
import { launchPath } from '../launch/sessions.ts';
import type { StepHost } from '../processing/step-host.ts';
import type { RunEngine } from '../runs/run-engine.ts';
import { runTransitions, type RunState } from '../runs/run-state.ts';
import { runViewer } from '../runs/run-view.ts';
import type { Run, RunStore } from '../runs/run.ts';
import { RequestError } from '../web/errors.ts';
import type { Pages } from './pages.ts';

export interface LaunchPagesOptions {
  readonly pages: Pages;
  readonly launches: LaunchStore;
  readonly store: RunStore;
  readonly engine: RunEngine;
  readonly steps: StepHost;
  readonly client: Pick<PlatformClient, 'getItem'>;
  /** Address of the platform, and its pages for people. */
  readonly platformUrl: string;
  readonly platformPages: WireProfile['pages'];
}

/** How old what a page shows may be. */
const lookEveryMs = 500;
/** Time itself changes what pages show, and so does what the platform makes of a file. */
const atLeastEveryMs = 3_000;
const runsPerPage = 25;
/** By then the platform has read a file that was delivered, or never will. */
const settledAfterMs = 5 * 60_000;
/** The states that a run passes when all goes well, as the page draws them. */
const goodPath = (['CREATED', 'AWAITING_APPROVAL', 'APPROVED', 'PROCESSING', 'UPLOADING', 'COMPLETED'] as const) satisfies readonly RunState[];

/** The pages of one launch, under `/launches/{launchId}`: what runs, a new run, and one run followed to its end. */
export function launchPages({ pages, launches, store, engine, steps, client, platformUrl, platformPages }: LaunchPagesOptions): Router {
  const router = Router({ mergeParams: true });
  const viewAll = runViewer({ store, engine, steps });
  const launchOf = async (params: object): Promise<Launch> => (await launches.find((params as { launchId: string }).launchId))!;

  router.get('/', async (req, res) => {
    const launch = await launchOf(req.params);
    const before = typeof req.query['before'] === 'string' ? req.query['before'] : undefined;
    const found = await store.listByLaunch(launch.id, { limit: runsPerPage + 1, before });
    const runs = await viewAll(found.slice(0, runsPerPage));
    const older = found.length > runsPerPage ? runs.at(-1)?.id : undefined;
    res.type('html').send(pages.render('launch', { launch, runs, older, before, steps: steps.steps, base: launchPath(launch.id) }));
  });

  router.get('/new/:stepId', async (req, res) => {
    const launch = await launchOf(req.params);
    const step = steps.steps.find(({ id }) => id === req.params.stepId);
    if (!step) throw new RequestError(404, 'unknown_step', 'there is no such step');
    res.type('html').send(pages.render('new-run', { launch, step, base: launchPath(launch.id) }));
  });

  router.get('/runs/:runId', async (req, res) => {
    const launch = await launchOf(req.params);
    const run = await store.find(req.params.runId);
    if (run?.launchId !== launch.id) throw new RequestError(404, 'run_not_found', 'There is no such run in this launch.');
    const shown = (await viewAll([run]))[0]!;
    const [item, summary] = await Promise.all([resultOf(run, launch), store.summary(run.id)]);
    const links = {
      approvals: platformPages.approvals && platformUrl + platformPages.approvals,
      result: item?.collection && platformPages.item && platformUrl + platformPages.item(item.collection, item.id),
    };
    res.type('html').send(pages.render('run', { launch, run: shown, path: pathOf(shown), item, summary, links, base: launchPath(launch.id) }));
  });

  /** Whether anything of the launch has changed: one question, however many runs there are. */
  router.get('/events', runEvents(async (launchId) => {
    const { number, lastAtMs, isUnderWay } = await store.changesOf(launchId);
    return { seen: `${number} ${engine.progressChangesOf(launchId)}`, isMoving: isUnderWay || Date.now() - lastAtMs < settledAfterMs };
  }));

  /** The item that the platform has made of a run's file; null where there is none, or none yet, or the platform is away. */
  async function resultOf({ state, file }: Run, { user }: Launch): Promise<CatalogItem | null> {
    if (state !== 'COMPLETED' || !file?.fileId || !user.id) return null;
    return client.getItem(collectionOfUploads(user.id), file.fileId, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  }
  return router;
}

/** Where a run is on its way: what it has passed, where it is, and the end it took where that is not the good one. */
function pathOf({ state, history }: { state: RunState; history: readonly { state: RunState }[] }): { state: RunState; is: 'done' | 'now' | 'bad' | 'ahead' }[] {
  const isGood = goodPath.some((one) => one === state);
  const last = isGood ? state : (history.findLast((one) => goodPath.some((good) => good === one.state))?.state ?? 'CREATED');
  const reached = goodPath.findIndex((one) => one === last);
  const path = goodPath.map((one, i) => ({ state: one, is: i < reached || (i === reached && (!isGood || runTransitions[one].length === 0)) ? ('done' as const) : i === reached ? ('now' as const) : ('ahead' as const) }));
  return isGood ? path : [...path.filter(({ is }) => is === 'done'), { state, is: 'bad' }];
}

/** Server-sent events: `change` whenever what `look` has `seen` of the launch is another, and every `atLeastEveryMs` while something is moving. */
function runEvents(look: (launchId: string) => Promise<{ seen: string; isMoving: boolean }>): RequestHandler {
  const streams = new OpenStreams({ mostOfOne: 20, mostOfAll: 2_000 });
  return (req, res) => {
    const { launchId } = req.params as { launchId: string };
    const close = streams.open(launchId);
    if (close === null) throw new RequestError(429, 'too_many_streams', 'Too many pages of this launch are open, or too many in all. Close some; this page shows the state of when it was loaded.');
    res.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
    res.flushHeaders();
    res.write('retry: 1000\n\n');
    let [seen, toldAt, busy] = ['', performance.now(), false];
    const timer = setInterval(async () => {
      if (busy) return;
      busy = true;
      try {
        const now = await look(launchId);
        if (now.seen !== seen || (now.isMoving && performance.now() - toldAt > atLeastEveryMs)) {
          [seen, toldAt] = [now.seen, performance.now()];
          res.write('event: change\ndata: \n\n');
        }
      } catch (error) {
        req.log.warn({ err: error }, 'a page could not be told of changes');
      } finally {
        busy = false;
      }
    }, lookEveryMs);
    req.once('close', () => {
      clearInterval(timer);
      close();
    });
  };
}
