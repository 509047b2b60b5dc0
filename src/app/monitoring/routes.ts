import { isIP } from 'node:net';
import { Router, type RequestHandler } from 'express';
import { RequestError } from '../web/errors.ts';
import type { Metrics, MetricsSources } from './metrics.ts';
import { checkReadiness, type ReadinessOptions } from './readiness.ts';

export interface MonitoringOptions {
  readonly metrics: Metrics;
  readonly sources: MetricsSources;
  readonly readiness: ReadinessOptions;
  /** False: `/metrics` answers on loopback only. */
  readonly publicMetrics: boolean;
}

/** `/health`: the process answers. `/ready`: it can do its work. `/metrics`: for Prometheus. */
export function monitoringRoutes({ metrics, sources, readiness, publicMetrics }: MonitoringOptions): Router {
  const router = Router();
  router.get('/health', (_req, res) => void res.json({ status: 'ok' }));
  router.get('/ready', async (_req, res) => {
    const { ready, confinement, checks } = await checkReadiness(readiness);
    res.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not ready', confinement, checks });
  });
  router.get('/metrics', ...(publicMetrics ? [] : [onLoopbackOnly]), async (_req, res) => {
    const { type, text } = await metrics.render(sources);
    res.type(type).send(text);
  });
  return router;
}

/** By the connection itself: what a proxy says of its client is not asked. */
const onLoopbackOnly: RequestHandler = (req, _res, next) => {
  const address = (req.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const isLoopback = address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
  // Behind a proxy on the same machine everybody comes from loopback.
  if (isLoopback && req.get('x-forwarded-for') === undefined) return next();
  throw new RequestError(404, 'not_found', 'There is nothing here.');
};
