import { json, Router } from 'express';
import * as z from 'zod';
import { bbox } from '../../contract/index.ts';
import { inputsOf } from '../../steps/step.ts';
import type { LaunchStore } from '../launch/launch-store.ts';
import { launchIdIn } from '../launch/sessions.ts';
import type { OwnUploads } from './own-uploads.ts';
import type { StepHost } from '../processing/step-host.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import { parseRequest } from '../web/errors.ts';
import { pageDeadline, whileAsked } from '../web/page-call.ts';
import { incompatibilityReason } from '../processing/fit.ts';
import { viewItem } from './found-item.ts';

const everywhere: [number, number, number, number] = [-180, -90, 180, 90];
/** Needs both ends: the interface shows no open interval. */
const everTime = '1900-01-01T00:00:00Z/2200-01-01T00:00:00Z';

/** Body of `POST api/items/search`. Newest first. */
const itemSearch = z.strictObject({
  collections: z.array(z.string()).min(1, 'must name at least one collection'),
  bbox: bbox.default(everywhere),
  /** `<start>/<end>` */
  datetime: z.string().default(everTime),
  /** The step that the items are for: each then says why it does not fit, if it does not. */
  stepId: z.string().optional(),
  /** Name of the step's input that the items are for. Default: the first input. */
  input: z.string().optional(),
  limit: z.int().min(1).max(200).default(20),
  offset: z.int().min(0).default(0),
});

/** A new upload's collection is there after this at the latest. */
const collectionsKeptMs = 10_000;

export interface CatalogRoutesOptions {
  readonly client: Pick<PlatformClient, 'listCollections' | 'searchItems'>;
  readonly steps: Pick<StepHost, 'find'>;
  readonly launches: Pick<LaunchStore, 'find'>;
  readonly uploads: OwnUploads;
}

/** Routes that list the choices for a run's input: the platform's collections, and the items that a search finds. */
export function catalogRoutes({ client, steps, launches, uploads }: CatalogRoutesOptions): Router {
  const router = Router({ mergeParams: true });
  const launchOf = (params: object) => launches.find(launchIdIn(params));
  let listed: { readonly collections: ReturnType<PlatformClient['listCollections']>; readonly untilMs: number } | null =
    null;

  /** The same for all users: asked for once in a while. A failure is not kept. */
  function listCollections(): ReturnType<PlatformClient['listCollections']> {
    if (listed === null || performance.now() > listed.untilMs) {
      const made = {
        collections: client.listCollections({ signal: pageDeadline() }),
        untilMs: performance.now() + collectionsKeptMs,
      };
      made.collections.catch(() => listed === made && (listed = null));
      listed = made;
    }
    return listed.collections;
  }

  router.get('/collections', async (req, res) => {
    const launch = await launchOf(req.params);
    const collections = await listCollections();
    res.json({ collections: collections.filter(({ id }) => uploads.mayUse(launch, id)) });
  });
  router.post('/items/search', json({ limit: '64kb' }), async (req, res) => {
    const { stepId, input, ...wanted } = parseRequest(itemSearch, req.body);
    uploads.requireOwn(await launchOf(req.params), wanted.collections);
    const step = stepId === undefined ? null : steps.find(stepId);
    const inputs = step ? inputsOf(step) : [];
    const [, declared] = inputs.find(([name]) => name === input) ?? inputs[0] ?? [];
    const { items, numberMatched } = await client.searchItems(
      { ...wanted, sortby: [{ field: 'properties.datetime', direction: 'desc' }] },
      { signal: whileAsked(res) },
    );
    res.json({
      items: items.map((item) => ({
        ...viewItem(item, wanted.collections.length === 1 ? wanted.collections[0] : undefined),
        ...(step && declared && { incompatibility: incompatibilityReason(step, declared, item) }),
      })),
      numberMatched: numberMatched ?? null,
    });
  });
  return router;
}
