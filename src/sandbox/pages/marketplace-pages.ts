import { Router, urlencoded, type Request, type Response } from 'express';
import { appManifest, launchModes, launchTokenField, validationDetails } from '../../contract/index.ts';
import type { Users } from '../identity/users.ts';
import type { Apps } from '../marketplace/apps.ts';
import { renewPolicies } from '../marketplace/launch.ts';
import { newLaunch, type Launches } from '../marketplace/launches.ts';
import { parseValues } from '../web/sandbox-error.ts';
import { parseCookies } from './cookies.ts';
import type { RenderPage } from './page.ts';

const form = urlencoded({ extended: false, limit: '512kb' });
const actingUserCookie = 'sandbox.user';

/** `/`: the registered apps, to be launched as one of the users; and registering one. */
export function marketplacePages({ apps, users, launches, render }: { apps: Apps; users: Users; launches: Launches; render: RenderPage }): Router {
  const router = Router();

  function show(req: Request, res: Response, registering: { values: Readonly<Record<string, unknown>>; problems: Readonly<Record<string, string>> } = { values: {}, problems: {} }): void {
    const userId = parseCookies(req.get('cookie'))[actingUserCookie];
    render(res, 'marketplace', { apps: apps.list(), users: users.list(), userId, renewPolicies, launchModes, ...registering });
  }

  router.get('/', (req, res) => show(req, res));

  router.post('/marketplace/apps', form, (req, res) => {
    const values = Object.fromEntries(Object.entries((req.body ?? {}) as Record<string, unknown>).filter(([, value]) => value !== ''));
    const read = appManifest.safeParse(values);
    if (!read.success) {
      const problems = Object.fromEntries(validationDetails(read.error).map(({ path, message }) => [path, message]));
      return show(req, res.status(400), { values, problems });
    }
    apps.register(read.data);
    res.redirect(303, '/');
  });

  router.post('/marketplace/launch', form, (req, res) => {
    const body = (req.body ?? {}) as Record<string, unknown>;
    const wanted = parseValues(newLaunch, body);
    const { launch, issued, launchUrl } = launches.create(wanted);
    const app = apps.find(launch.appId)!;
    res.cookie(actingUserCookie, launch.userId, { httpOnly: true, sameSite: 'lax', path: '/' });
    const isFramed = body['framed'] === 'true';
    if (app.launchMode === 'query' && !isFramed) return res.redirect(303, launchUrl);
    // A form: the token goes where it must, and stands in no address of the sandbox.
    const url = new URL(app.launchUrl);
    const fields = [...(app.launchMode === 'query' ? url.searchParams : []), [launchTokenField, issued.token]];
    if (app.launchMode === 'query') url.search = '';
    render(res, 'opening', { app, launch, isFramed, method: app.launchMode === 'query' ? 'get' : 'post', action: url.href, fields });
  });
  return router;
}
