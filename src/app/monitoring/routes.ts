import { Router, type Request, type RequestHandler } from 'express';
import { isLoopbackName } from '../../contract/index.ts';
import { hostNameOf, isLocalRequest, wasForwarded } from '../../server/index.ts';
import { RequestError } from '../web/errors.ts';
import type { Metrics, MetricsSources } from './metrics.ts';
import { checkReadiness, type ReadinessOptions } from './readiness.ts';

export interface MonitoringOptions {
  readonly metrics: Metrics;
  readonly sources: MetricsSources;
  readonly readiness: ReadinessOptions;
  /** False: `/metrics` answers on loopback only. True: also other machines, but never a request that a proxy forwarded. */
  readonly publicMetrics: boolean;
}

/** `/health`: the process answers. `/ready`: it can do its work; its body also says whether database and platform answer. `/metrics`: for Prometheus. */
export function monitoringRoutes({ metrics, sources, readiness, publicMetrics }: MonitoringOptions): Router {
  const router = Router();
  router.get('/health', (_req, res) => void res.json({ status: 'ok' }));
  const look = lookedAtSeldom(() => checkReadiness(readiness));
  router.get('/ready', async (_req, res) => {
    const { ready, ...found } = await look();
    res.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not ready', ...found });
  });
  router.get('/metrics', publicMetrics ? notForwarded : onLoopbackOnly, async (_req, res) => {
    const { type, text } = await metrics.render({ ...sources, readiness: await look() });
    res.type(type).send(text);
  });
  return router;
}

/** Time for which an answer is reused, so that frequent requests do not call the platform more often. */
const readyForMs = 2_000;

function lookedAtSeldom<T>(look: () => Promise<T>): () => Promise<T> {
  let seen: { readonly atMs: number; readonly value: Promise<T> } | null = null;
  return () => {
    const nowMs = performance.now();
    if (seen === null || nowMs - seen.atMs > readyForMs) seen = { atMs: nowMs, value: look() };
    return seen.value;
  };
}

const nothingHere = () => new RequestError(404, 'not_found', 'There is nothing here.');

/** The proxy serves users; Prometheus asks each process directly. */
const notForwarded: RequestHandler = (req, _res, next) => next(wasForwarded(req) ? nothingHere() : undefined);

/** A request that a proxy passes on does not count as local, from any address; nor one of a page whose name leads to this machine. */
const onLoopbackOnly: RequestHandler = (req, _res, next) => {
  if (isLocalRequest(req) && namesLoopback(req)) return next();
  throw nothingHere();
};

function namesLoopback(req: Request): boolean {
  const name = hostNameOf(req.get('host'));
  return req.headersDistinct['host']?.length === 1 && name !== null && isLoopbackName(name);
}
