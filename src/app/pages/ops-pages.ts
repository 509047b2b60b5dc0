import { Router, type RequestHandler } from 'express';
import { rateLimit } from 'express-rate-limit';
import { KitError } from '../../contract/index.ts';
import { equalSecrets } from '../../server/index.ts';
import type { Secret } from '../config.ts';
import { caseOf, spanOf, statusOf } from '../runs/desk.ts';
import { readFilter } from '../runs/run-filter.ts';
import type { RunStore } from '../runs/run.ts';
import { RequestError } from '../web/errors.ts';
import type { Pages } from './pages.ts';

const listedRuns = 100;
/** Time for which failures are counted by their codes. */
const countedMs = 86_400_000;
const wrongKeysPerMinute = 10;

/** Password of HTTP basic authentication (RFC 7617). Empty: there is none. */
function passwordIn(header: string | undefined): string {
  const [, credentials = ''] = /^basic ([\w+/=-]+)$/i.exec(header ?? '') ?? [];
  const text = Buffer.from(credentials, 'base64').toString('utf8');
  return text.slice(text.indexOf(':') + 1);
}

/** Lets requests with the admin key pass, under any user name. Wrong keys are limited by address, and the right key works all the same. */
function adminKeyOnly(key: Secret): RequestHandler {
  const limit = rateLimit({
    ...{ windowMs: 60_000, limit: wrongKeysPerMinute, standardHeaders: 'draft-8', legacyHeaders: false },
    validate: { xForwardedForHeader: false },
    handler: (_req, _res, next) =>
      next(new RequestError(429, 'too_many_keys', 'Too many wrong keys came from this address.')),
  });
  return (req, res, next) => {
    if (equalSecrets(passwordIn(req.get('authorization')), key.reveal())) return next();
    void limit(req, res, (error?: unknown) => {
      res.set('WWW-Authenticate', 'Basic realm="operators", charset="UTF-8"');
      next(error ?? new RequestError(401, 'admin_key_required', 'This page is for the operators of this app.'));
    });
  };
}

export interface OpsPagesOptions {
  readonly key: Secret;
  readonly store: RunStore;
  readonly pages: Pages;
  readonly now: () => number;
}

/** Pages for operators: workers, runs by state and by code of failure, and one run over all processes. They change nothing: `ops` does. */
export function opsPages({ key, store, pages, now }: OpsPagesOptions): Router {
  const router = Router();
  router.use(adminKeyOnly(key));
  router.get('/', async (req, res) => {
    const where = typeof req.query['where'] === 'string' ? req.query['where'].trim() : '';
    const { filter, problem } = filterOf(where, now());
    const [status, runs, codes] = await Promise.all([
      statusOf(store, now()),
      problem === null ? store.search({ ...filter, limit: listedRuns }) : [],
      store.failureCodes(now() - countedMs),
    ]);
    res.type('html').send(pages.render('ops', { status, runs, codes, where, problem, listedRuns, spanOf }));
  });
  router.get('/runs/:runId', async (req, res) => {
    const found = await caseOf(store, req.params.runId);
    if (!found) throw new RequestError(404, 'run_not_found', 'There is no such run.');
    res.type('html').send(pages.render('ops-run', { found }));
  });
  return router;
}

function filterOf(where: string, nowMs: number) {
  try {
    return { filter: where === '' ? {} : readFilter(where, nowMs), problem: null };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { filter: {}, problem: error.message };
  }
}
