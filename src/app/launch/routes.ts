import { Router, urlencoded, type Request, type Response } from 'express';
import type { WireProfile } from '../../contract/index.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import { beginLaunch, readLaunchToken } from './begin-launch.ts';
import type { LaunchStore } from './launch-store.ts';
import { launchPath, openSession } from './sessions.ts';

/** `GET /launch?token=` and `POST /launch` with a form: both move the token into a new session and go on to an address without it. */
export function launchRoutes(options: {
  client: PlatformClient;
  launches: LaunchStore;
  profile: Pick<WireProfile, 'launchTokenField' | 'limits'>;
  now: () => number;
}): Router {
  async function begin(req: Request, res: Response, token: unknown): Promise<void> {
    const launch = await beginLaunch(
      readLaunchToken(token),
      options.client,
      options.launches,
      options.profile.limits,
      options.now,
    );
    await openSession(req, launch.id);
    res.redirect(303, `${launchPath(launch.id)}/`);
  }

  return (
    Router()
      // Link checkers and mail scanners look before people do: what they ask uses up nothing.
      .head('/launch', (_req, res) => void res.status(204).end())
      .get('/launch', (req, res) => begin(req, res, req.query[options.profile.launchTokenField]))
      .post('/launch', urlencoded({ extended: false, limit: '16kb', parameterLimit: 20 }), (req, res) => {
        const form = (req.body ?? {}) as Record<string, unknown>;
        return begin(req, res, form[options.profile.launchTokenField]);
      })
  );
}
