import { parseCookie } from 'cookie';
import { Router, urlencoded, type Request, type Response } from 'express';
import { appManifest, launchModes, validationDetails } from '../../contract/index.ts';
import type { Faults } from '../call/faults.ts';
import { renewPolicies } from '../identity/launch.ts';
import { itemOf, newLaunch } from '../marketplace/launches.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import type { Files } from '../uploads/files.ts';
import { fieldsOf } from '../web/form-body.ts';
import { parseValues } from '../web/sandbox-error.ts';
import { viewOperation, viewRequest, type ApprovalPagesOptions } from './approval-pages.ts';
import { viewItem } from './catalog-browser.ts';

const form = urlencoded({ extended: false, limit: '512kb' });
/** Operations of each kind in the panel. */
const maxBeside = 10;
/** Waiting operations of a launch among which the frame looks for the newest. */
const maxWaiting = 200;
const actingUserCookie = 'sandbox.user';

/** Launches whose page beside the app was not loaded yet: the oldest makes room. */
const maxOpenings = 200;

/** Request by which a browser opens the app of a new launch. */
interface Opening {
  readonly method: 'get' | 'post';
  readonly action: string;
  /** With the token. */
  readonly fields: readonly (readonly [string, string])[];
  /** The frame has opened the app before. */
  readonly isOpened?: boolean;
}

export interface MarketplacePagesOptions extends Omit<ApprovalPagesOptions, 'isFramed'> {
  /** Receives each launch whose app a page of the sandbox shows. */
  readonly onFramed: (launchId: string) => void;
  readonly events: Pick<LaunchEvents, 'has'>;
  readonly faults: Pick<Faults, 'armAgain'>;
  readonly files: Pick<Files, 'hasDelivered'>;
}

/** The scene that a new user begins with: a real one of a real coast. */
const firstScene = { collectionId: 'olinda-coast', itemId: 'olinda-landsat7' } as const;

/** `/`: the registered apps, to be launched as one of the users. `/marketplace/apps`: registering one. `/launches/{id}/frame`: the app with its approvals beside it. */
export function marketplacePages(options: MarketplacePagesOptions): Router {
  const { apps, users, launches, operations, trace, verdicts, catalog, events, faults, files, render } = options;
  const router = Router();
  /** Tokens are in no address of the sandbox: what opens an app waits here for the page that is redirected to. */
  const openings = new Map<string, Opening>();

  /** The first steps of a new user, and those that are done. Null without an app, or without the scene. */
  function startHere() {
    const [app] = apps.list();
    const item = catalog.items.find(firstScene.collectionId, firstScene.itemId);
    if (!app || !item) return null;
    return {
      ...{ app, item: viewItem(item), ...firstScene },
      isDone: {
        launched: events.has('launched'),
        asked: operations.list(null, 1).length > 0,
        approved: events.has('approved'),
        delivered: files.hasDelivered(),
        faulted: events.has('fault armed'),
      },
    };
  }

  async function show(req: Request, res: Response): Promise<void> {
    const userId = parseCookie(req.get('cookie') ?? '')[actingUserCookie];
    const newest = apps.list().map((app) => ({ app, launchId: launches.newestOf(app.id)?.id ?? null }));
    await verdicts.read(newest.flatMap(({ launchId }) => launchId ?? []));
    const shown = newest.map(({ app, launchId }) => ({
      ...app,
      verdict: launchId && { launchId, result: verdicts.of(launchId).verdict.result },
    }));
    render(res, 'marketplace', {
      apps: shown,
      users: users.list(),
      userId,
      renewPolicies,
      start: startHere(),
    });
  }

  router.get('/', show);
  router.get('/marketplace/apps', (_req, res) => render(res, 'register', { launchModes, values: {}, problems: {} }));

  router.post('/marketplace/apps', form, (req, res) => {
    const values = Object.fromEntries(Object.entries(fieldsOf(req)).filter(([, value]) => value !== ''));
    const read = appManifest.safeParse(values);
    if (!read.success) {
      const problems = Object.fromEntries(validationDetails(read.error).map(({ path, message }) => [path, message]));
      return render(res.status(400), 'register', { launchModes, values, problems });
    }
    apps.register(read.data);
    res.redirect(303, '/');
  });

  router.post('/marketplace/launch', form, (req, res) => {
    const body = fieldsOf(req);
    const { framed, faultsOf, ...asked } = body;
    const wanted = parseValues(newLaunch, asked);
    const { launch, app, issued, launchUrl } = launches.create(wanted);
    if (typeof faultsOf === 'string') faults.armAgain(faultsOf, launch.id);
    res.cookie(actingUserCookie, launch.userId, { httpOnly: true, sameSite: 'lax', path: '/' });
    const isFramed = framed === 'true';
    if (app.launchMode === 'query' && !isFramed) return res.redirect(303, launchUrl);
    // A form: the token goes where it must, and stands in no address of the sandbox.
    const url = new URL(app.launchUrl);
    const fields: [string, string][] = [
      ...(app.launchMode === 'query' ? url.searchParams : []),
      [launches.tokenField, issued.token],
      ...Object.entries(itemOf(wanted)),
    ];
    if (app.launchMode === 'query') url.search = '';
    const opening: Opening = { method: app.launchMode === 'query' ? 'get' : 'post', action: url.href, fields };
    if (!isFramed) return render(res, 'opening', { app, launch, ...opening });
    openings.set(launch.id, { ...opening, isOpened: false });
    options.onFramed(launch.id);
    for (const oldest of openings.keys()) if (openings.size > maxOpenings) openings.delete(oldest);
    res.redirect(303, `/launches/${launch.id}/frame`);
  });

  router.get('/launches/:launchId/frame', async (req, res) => {
    const launch = launches.get(req.params.launchId);
    const opening = openings.get(launch.id) ?? null;
    // A page that brings itself up to date opens nothing. A reload opens the app again by the same token: a session that the app keeps goes on.
    if (opening && req.get('sec-fetch-dest') !== 'empty') openings.set(launch.id, { ...opening, isOpened: true });
    const waiting = operations.page(maxWaiting, { isWaiting: true, launchId: launch.id }).slice(-maxBeside);
    const beside = [...waiting, ...operations.page(maxBeside, { isWaiting: false, launchId: launch.id })];
    render(res, 'frame', {
      launch,
      opening,
      app: apps.find(launch.appId) ?? { id: launch.appId, name: launch.appId },
      user: users.find(launch.userId)?.name ?? launch.userId,
      operations: await Promise.all(
        beside.map(async (operation) => ({
          ...viewOperation(operation, options),
          ...(await viewRequest(operation, options)),
        })),
      ),
      callCount: trace.count(launch.id),
    });
  });
  return router;
}
