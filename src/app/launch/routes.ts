import { setTimeout as sleep } from 'node:timers/promises';
import { Router, urlencoded, type Request, type Response } from 'express';
import { isPathSegment, launchItemFields, type WireProfile } from '../../contract/index.ts';
import { codeOf, isRecord } from '../../files/index.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import { beginLaunch, readLaunchToken } from './begin-launch.ts';
import type { Launch, LaunchStore } from './launch-store.ts';
import { hasBegunHere, launchPath, openSession } from './sessions.ts';
import { pageDeadline } from '../web/page-call.ts';

/** Longest identifier of a collection or an item. */
const maxItemCharacters = 512;

/** Query of the launch's page for a launch from an item of the catalog; empty for others. */
function hintOf(fields: Readonly<Record<string, unknown>>): string {
  const ids = [fields[launchItemFields.collectionId], fields[launchItemFields.itemId]];
  const isItem = ids.every((id) => typeof id === 'string' && isPathSegment(id) && id.length <= maxItemCharacters);
  return isItem ? `?item=${encodeURIComponent(ids.map((id) => encodeURIComponent(String(id))).join('/'))}` : '';
}

/** True if a browser prefetches, prerenders or previews the page before its user opens it. */
const isSpeculative = (req: Request): boolean =>
  ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) =>
    /prefetch|prerender|preview/i.test(req.get(name) ?? ''),
  );

/** Query parameter of a launch address that a browser asks for a second time. */
const secondAsk = 'again';
/** Pause before the browser is asked to try again, so that it has the first tab's cookie. */
const otherTabMs = 500;

/**
 * True if a browser opens a page, and asks for the first time. Another of its tabs may have begun the launch a moment ago, whose
 * cookie this request could not have yet: asked once more, the same browser has it, and no other has.
 */
const mayBeOtherTab = (req: Request): boolean =>
  req.get('sec-fetch-mode') === 'navigate' && req.query[secondAsk] === undefined;

/** `GET /launch?token=` and `POST /launch` with a form: both move the token into a new session and go on to an address without it. The browser that began the session gets back into it. */
export function launchRoutes(options: {
  client: PlatformClient;
  launches: LaunchStore;
  profile: Pick<WireProfile, 'launchTokenField' | 'limits'>;
  now: () => number;
  traceLaunch: (begin: () => Promise<Launch | null>) => Promise<Launch | null>;
}): Router {
  async function begin(
    req: Request,
    res: Response,
    token: unknown,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const word = readLaunchToken(token);
    const hint = hintOf(fields);
    const begun = await options.launches.begunBy(word);
    if (begun !== null && hasBegunHere(req, begun)) return res.redirect(303, `${launchPath(begun)}/${hint}`);
    const launch = await options
      .traceLaunch(() =>
        beginLaunch(word, options.client, options.launches, options.now, () => res.closed, pageDeadline()),
      )
      .catch(async (error: unknown) => {
        if (codeOf(error) !== 'launch_already_used' || !mayBeOtherTab(req)) throw error;
        await sleep(otherTabMs);
        return 'other tab' as const;
      });
    // A 307 sends a form once more.
    if (launch === 'other tab') return res.redirect(307, `${req.originalUrl}${req.originalUrl.includes('?') ? '&' : '?'}${secondAsk}=1`); // oxfmt-ignore
    if (launch === null) return;
    await openSession(req, launch.id);
    // The cookie reaches nobody, so the next request begins the session.
    if (res.closed) return void (await options.launches.forget([launch.id]));
    res.redirect(303, `${launchPath(launch.id)}/${hint}`);
  }

  return (
    Router()
      // Link checkers and mail scanners look before people do: what they ask uses up nothing.
      .head('/launch', (_req, res) => void res.status(204).end())
      .get('/launch', (req, res) => {
        if (!isSpeculative(req)) return begin(req, res, req.query[options.profile.launchTokenField], req.query);
        // The browser sends the request again when its user opens the page.
        res.status(503).set('cache-control', 'no-store').end();
      })
      .post('/launch', urlencoded({ extended: false, limit: '16kb', parameterLimit: 20 }), (req, res) => {
        const form: Record<string, unknown> = isRecord(req.body) ? req.body : {};
        return begin(req, res, form[options.profile.launchTokenField], form);
      })
  );
}
