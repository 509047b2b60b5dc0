import compression from 'compression';
import { Router, type Response } from 'express';
import type { CatalogItem, WireProfile } from '../../contract/index.ts';
import { hasKey } from '../../contract/keys.ts';
import { needsLaunch } from '../app-errors.ts';
import { changeEvents } from './change-events.ts';
import type { EventStreams } from '../../server/index.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import type { Launch, LaunchStore } from '../launch/launch-store.ts';
import { launchPath, noSession } from '../launch/sessions.ts';
import type { AppDefinition } from '../definition/app-definition.ts';
import type { StepHost } from '../processing/step-host.ts';
import { parameterSchema, valueInWords } from '../processing/step-parameters.ts';
import type { RunEngine } from '../runs/run-engine.ts';
import { isFinal, runStates, runTransitions, type RunState } from '../runs/run-state.ts';
import { sendPicture } from '../runs/routes.ts';
import type { InputSource, RunInput } from '../processing/run-input.ts';
import { itemsOf } from '../processing/facts-of-inputs.ts';
import { unfitReason } from '../processing/fit.ts';
import { inputInWords } from '../runs/input-words.ts';
import { inputsOf, mainInput, type AnyStep } from '../../steps/step.ts';
import { serveDocuments } from '../runs/run-documents.ts';
import { runViewer } from '../runs/run-view.ts';
import type { Run, RunStore } from '../runs/run.ts';
import { RecentMap } from '../recent-map.ts';
import { RequestError } from '../web/errors.ts';
import type { Pages } from './pages.ts';

export interface LaunchPagesOptions {
  readonly pages: Pages;
  readonly launches: LaunchStore;
  readonly store: RunStore;
  readonly engine: RunEngine;
  readonly steps: StepHost;
  /** Streams by which pages learn of changes. */
  readonly streams: EventStreams;
  readonly client: Pick<PlatformClient, 'getItem'>;
  /** False for a collection that belongs to another user. */
  readonly mayUse: (launch: Launch, collectionId: string) => boolean;
  /** Address of the platform, and its pages for people. */
  readonly platformUrl: string;
  readonly profile: Pick<WireProfile, 'pages' | 'uploadsCollection'>;
  /** The app's own. */
  readonly appPages?: AppDefinition['pages'];
}

const runsPerPage = 25;
/** Runs in the list on the page of a run. */
const runsBeside = 20;
const maxInputs = 1_000;
/** Source items that a run's page links. */
const maxSourceLinks = 10;
/** Filters for the list of runs. */
const filters = {
  open: runStates.filter((state) => !isFinal(state)),
  done: ['COMPLETED'],
  other: runStates.filter((state) => isFinal(state) && state !== 'COMPLETED'),
} as const satisfies Record<string, readonly RunState[]>;
/** After this the platform has read a delivered file, or never will. */
const settledAfterMs = 5 * 60_000;
/** Greatest age of a page that shows remaining minutes, and least age of one that waits for the platform to read a file. */
const remainingTimeMs = 30_000;
const fileStatusMs = 3_000;
/** The states that a run passes when all goes well, as the page draws them. */
const goodPath = [
  'CREATED',
  'AWAITING_APPROVAL',
  'APPROVED',
  'PROCESSING',
  'UPLOADING',
  'COMPLETED',
] as const satisfies readonly RunState[];

/** The pages of one launch, under `/launches/{launchId}`: what runs, a new run, and one run followed to its end. */
export function launchPages(options: LaunchPagesOptions): Router {
  const { pages, launches, store, engine, steps, streams, platformUrl, appPages = [] } = options;
  const router = Router({ mergeParams: true });
  const views = runViewer({ store, engine, steps });
  /** A session may outlive its launch, whose user was forgotten meanwhile. */
  const findLaunch = async (params: object): Promise<Launch> => {
    const launch = await launches.find((params as { launchId: string }).launchId);
    if (!launch) throw noSession();
    return launch;
  };

  const analysesFor = analyses(options);
  const runPage = runPages(options, views);
  const compressed = compression();
  router.use((req, res, next) => (/^\/(events|api)(\/|$)/.test(req.path) ? next() : compressed(req, res, next)));

  router.get('/', async (req, res) => {
    const launch = await findLaunch(req.params);
    const owner = launch.user.id;
    const chosen = chosenItem(textOf(req.query['item']));
    const { isKnown, list } = await analysesFor(launch, chosen);
    const fitting = isKnown && list.find(({ reason }) => reason === null);
    // The platform has named an item: the form of the first step that it fits, from which all others can be chosen.
    if (chosen && fitting)
      return res.redirect(303, `${launchPath(launch.id)}/new/${fitting.id}?item=${encodeURIComponent(chosen.hint)}`);
    const before = textOf(req.query['before']);
    const wanted = textOf(req.query['show']) ?? '';
    const filter = hasKey(filters, wanted) ? wanted : null;
    const states = filter === null ? undefined : filters[filter];
    const found = await store.listByOwner(owner, { limit: runsPerPage + 1, before, states });
    const shown = found.slice(0, runsPerPage);
    const runs = (await views.all(shown)).map((run, i) => ({ ...run, isHere: shown[i]?.launchId === launch.id }));
    const older = found.length > runsPerPage ? runs.at(-1)?.id : undefined;
    send(res, 'launch', launch, {
      runs,
      older,
      before,
      filter: filter ?? '',
      count: await store.countByOwner(owner, states),
      steps: steps.steps,
      chosen,
      now: new Date().toISOString(),
    });
  });

  router.get('/new/:stepId', async (req, res) => {
    const launch = await findLaunch(req.params);
    const step = steps.steps.find(({ id }) => id === req.params.stepId);
    if (!step) throw new RequestError(404, 'unknown_step', 'this app has no such step');
    const from = textOf(req.query['from']);
    const earlier = from === undefined ? null : await store.find(from);
    const isOwn = earlier !== null && earlier.stepId === step.id && earlier.owner === launch.user.id;
    const chosen = chosenItem(textOf(req.query['item']));
    send(res, 'new-run', launch, {
      step,
      parameters: parameterSchema(step).properties,
      required: parameterSchema(step).required,
      earlier: {
        parameters: isOwn ? earlier.parameters : {},
        input: chosenInput(step, chosen, isOwn ? earlier.input : null),
      },
      analyses: await analysesFor(launch, chosen),
    });
  });

  for (const page of appPages)
    router.get(`/pages/${page.path}`, async (req, res) => {
      const launch = await findLaunch(req.params);
      const { user } = launch;
      send(res, page.template, launch, { ...(await page.data?.({ user })), user, title: page.title, here: page.path });
    });

  router.get('/runs/:runId', async (req, res) => {
    const launch = await findLaunch(req.params);
    send(res, 'run', launch, await runPage(launch, await findRun(req.params.runId, launch)));
  });
  router.get('/runs/:runId/picture.png', async (req, res) =>
    sendPicture(res, store, await findRun(req.params.runId, await findLaunch(req.params))),
  );
  serveDocuments(router, async (req) => findRun(req.params.runId, await findLaunch(req.params)), { store, steps, platformUrl }); // oxfmt-ignore
  router.get('/runs/:runId/values.json', async (req, res) => {
    const found = await store.summary((await findRun(req.params.runId, await findLaunch(req.params))).id);
    res
      .set('Cache-Control', 'private, max-age=3600')
      .json({ values: found?.values ?? null, classes: found?.bands.find(({ classes }) => classes)?.classes ?? null });
  });

  function send(res: Response, name: string, launch: Launch, data: object): void {
    const { user } = launch;
    const who = user.name ?? user.email ?? user.id;
    res.type('html').send(
      pages.render(name, {
        ...data,
        inputInWords,
        valueInWords,
        inputsOf,
        launch,
        base: launchPath(launch.id),
        who: user.organization ? `${who}, ${user.organization}` : who,
        marketplace: platformUrl,
      }),
    );
  }

  /** A run of this launch, or of another that the same user began: users see what is theirs. */
  async function findRun(runId: string, launch: Launch): Promise<Run> {
    const run = await store.find(runId);
    if (run && (run.launchId === launch.id || (run.owner !== '' && run.owner === launch.user.id))) return run;
    throw new RequestError(404, 'run_not_found', 'You have no such run.');
  }

  /**
   * Reports a change of the launch, or a change of state in the user's other runs. Each look makes two queries, for any
   * number of runs.
   */
  router.get(
    '/events',
    changeEvents(streams, async (params) => {
      const launch = await findLaunch(params);
      const owner = launch.user.id;
      const look = async () => {
        const [{ number, lastAtMs, isUnderWay }, lastMs] = await Promise.all([
          store.changesOf(launch.id),
          store.lastChangeOf(owner),
        ]);
        const quietMs = Date.now() - Math.max(lastAtMs, lastMs);
        return {
          seen: `${number} ${engine.progressChangesOf(launch.id)} ${lastMs}`,
          maxAgeMs: maxAgeMs(quietMs, isUnderWay),
        };
      };
      return { owner, subject: launch.id, look };
    }),
  );

  return router;
}

/** A step for the choice of an analysis. `reason` says why the chosen item does not fit it, and is null otherwise. */
interface Analysis {
  readonly id: string;
  readonly title: string;
  readonly reason: string | null;
}

/** Returns the function that lists the analyses of a chosen item. `isKnown` is false without an item that the launch may use and the platform has. */
function analyses({ steps, client, mayUse }: LaunchPagesOptions) {
  return async (
    launch: Launch,
    chosen: ReturnType<typeof chosenItem>,
  ): Promise<{ isKnown: boolean; list: readonly Analysis[] }> => {
    const item =
      chosen && mayUse(launch, chosen.collectionId)
        ? await client
            .getItem(chosen.collectionId, chosen.itemId, { signal: AbortSignal.timeout(2_000) })
            .catch(() => null)
        : null;
    const list = steps.steps.map((step) => ({
      id: step.id,
      title: step.title,
      reason: item ? unfitReason(step, item) : null,
    }));
    return { isKnown: item !== null, list };
  };
}

/** The platform's page about the request that failed. Null if there is none. */
function requestPage(
  { pages }: Pick<WireProfile, 'pages'>,
  platformUrl: string,
  requestId: string | null | undefined,
): string | null {
  return requestId && pages.request ? platformUrl + pages.request(requestId) : null;
}

/** Returns the function that collects the data of a run's page. */
function runPages(
  { store, steps, client, platformUrl, profile }: LaunchPagesOptions,
  views: ReturnType<typeof runViewer>,
): (launch: Launch, run: Run) => Promise<object> {
  /** Pictures of the inputs of runs, null for inputs without one: a page that brings itself up to date asks the platform once. */
  const inputs = new RecentMap<string, { href: string; box: readonly number[] } | null>(maxInputs);

  return async (launch, run) => {
    const shown = await views.one(run);
    const [item, summary, input] = await Promise.all([readResult(run, launch), store.summary(run.id), findInput(run)]);
    const recent = await store.listByOwner(launch.user.id, { limit: runsBeside });
    const step = steps.steps.find(({ id }) => id === run.stepId);
    const links = {
      approvals: profile.pages.approvals && platformUrl + profile.pages.approvals,
      request: requestPage(profile, platformUrl, run.failure?.requestId),
      sources: itemsOf(run.input)
        .slice(0, maxSourceLinks)
        .flatMap(({ collectionId, itemId }) => {
          const path = profile.pages.item?.(collectionId, itemId);
          return path === undefined ? [] : [{ itemId, href: platformUrl + path }];
        }),
      result: item?.collection && profile.pages.item && platformUrl + profile.pages.item(item.collection, item.id),
    };
    const titles = Object.fromEntries(
      Object.entries(step ? parameterSchema(step).properties : {}).map(([name, { title }]) => [name, title]),
    );
    return {
      ...{ run: shown, name: shown.name, path: pathOf(shown), item, summary, links, input, titles },
      runs: await views.all(recent),
      ...{
        around: summary?.corners ? boxAround(summary.corners) : null,
        isHere: run.launchId === launch.id,
        hasStep: step !== undefined,
        needsLaunch: run.failure !== null && needsLaunch(run.failure.code),
      },
    };
  };

  /** The item that the platform has made of a run's file; null where there is none, or none yet, or the platform is away. */
  async function readResult({ state, files: [file] }: Run, { user }: Launch): Promise<CatalogItem | null> {
    if (state !== 'COMPLETED' || !file?.fileId) return null;
    return client
      .getItem(profile.uploadsCollection(user.id), file.fileId, { signal: AbortSignal.timeout(2_000) })
      .catch(() => null);
  }

  /** The run's input, for the map; null unless it is a single item with a picture, and if the platform is away. */
  async function findInput({ id, input }: Run): Promise<{ href: string; box: readonly number[] } | null> {
    const [first, another] = input.type === 'platform' ? input.items : [];
    if (!first || another) return null;
    const known = inputs.get(id);
    if (known !== undefined) return known;
    const item = await client
      .getItem(first.collectionId, first.itemId, { signal: AbortSignal.timeout(2_000) })
      .catch(() => null);
    // The platform is away: the next view asks again.
    if (item === null) return null;
    const picture = item.previewHref && item.bbox?.length === 4 ? { href: item.previewHref, box: item.bbox } : null;
    inputs.set(id, picture);
    return picture;
  }
}

/** Greatest age of a page, `quietMs` after the last change. The platform reads most files soon, and others hardly ever. */
function maxAgeMs(quietMs: number, isUnderWay: boolean): number | null {
  const forFile = quietMs < settledAfterMs ? Math.max(fileStatusMs, quietMs / 4) : Infinity;
  const shortest = Math.min(forFile, isUnderWay ? remainingTimeMs : Infinity);
  return shortest === Infinity ? null : shortest;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** West, south, east, north. */
function boxAround(corners: readonly (readonly [number, number])[]): [number, number, number, number] {
  const edge = (axis: 0 | 1, pick: (...values: number[]) => number) => pick(...corners.map((corner) => corner[axis]));
  return [edge(0, Math.min), edge(1, Math.min), edge(0, Math.max), edge(1, Math.max)];
}

/** The path of a run: the states that it has passed, the one that it is in, and its end if that is not COMPLETED. */
function pathOf({
  state,
  history,
}: {
  state: RunState;
  history: readonly { state: RunState }[];
}): { state: RunState; is: 'done' | 'now' | 'bad' | 'ahead' }[] {
  const isGood = goodPath.some((good) => good === state);
  const last = isGood
    ? state
    : (history.findLast((change) => goodPath.some((good) => good === change.state))?.state ?? 'CREATED');
  const reached = goodPath.findIndex((good) => good === last);
  const path = goodPath.map((good, i) => ({
    state: good,
    is:
      i < reached || (i === reached && (!isGood || runTransitions[good].length === 0))
        ? ('done' as const)
        : i === reached
          ? ('now' as const)
          : ('ahead' as const),
  }));
  return isGood ? path : [...path.filter(({ is }) => is === 'done'), { state, is: 'bad' }];
}

/** The item that the platform named at the launch, as `collection/item`; null if it named none. */
function chosenItem(hint: string | undefined) {
  const [collectionId = '', itemId = '', ...rest] = (hint ?? '').split('/').map(decoded);
  return hint === undefined || collectionId === '' || itemId === '' || rest.length > 0
    ? null
    : { hint, collectionId, itemId };
}

/** Returns the input of an earlier run with the chosen item as its first raster input. */
function chosenInput(step: AnyStep, item: ReturnType<typeof chosenItem>, earlier: RunInput | null): RunInput | null {
  const main = mainInput(step)?.[0];
  if (!item || main === undefined) return earlier;
  const { collectionId, itemId } = item;
  const source: InputSource = { type: 'platform', items: [{ collectionId, itemId }] };
  if (inputsOf(step).length === 1) return source;
  return { type: 'named', inputs: { ...(earlier?.type === 'named' ? earlier.inputs : {}), [main]: source } };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}
