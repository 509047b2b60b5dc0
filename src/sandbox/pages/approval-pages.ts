import { Router, urlencoded } from 'express';
import { iso } from '../clock.ts';
import type { SandboxClock } from '../clock.ts';
import type { Operation, Operations } from '../external-app/operations.ts';
import type { Users } from '../identity/users.ts';
import type { Apps } from '../marketplace/apps.ts';
import type { Launches } from '../marketplace/launches.ts';
import type { Trace } from '../referee/trace.ts';
import type { Verdicts } from '../referee/verdicts.ts';
import type { Catalog } from '../stac/catalog.ts';
import type { ItemSources } from '../stac/item-sources.ts';
import { fieldsOf } from '../web/form-body.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { viewItem } from './catalog-browser.ts';
import { flatten } from './flatten.ts';
import { pageOf } from './list-page.ts';
import type { RenderPage } from './page.ts';

const form = urlencoded({ extended: false, limit: '64kb' });
/** The oldest first: an approver decides on some, and sees the next. */
const pendingPerPage = 20;
const decidedPerPage = 50;
const maxAtOnce = 100;
/** An app that waits asks every 2 to 5 s: one that has been silent for so long waits no more. */
const silentAfterMs = 30_000;
/** Items of an operation that are drawn, and lines of its parameters that are shown. */
const maxItems = 12;
const maxLines = 100;

export interface ApprovalOptions {
  readonly operations: Operations;
  readonly launches: Launches;
  readonly apps: Apps;
  readonly users: Users;
  readonly clock: SandboxClock;
  readonly render: RenderPage;
}

export interface ApprovalPagesOptions extends ApprovalOptions {
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  readonly catalog: Catalog;
  readonly sources: Pick<ItemSources, 'sizeOf'>;
  /** True for a launch whose app a page of the sandbox shows beside its approvals. */
  readonly isFramed: (launchId: string) => boolean;
}

/** `/approvals`: what waits for the user, and what was decided. */
export function approvalPages(options: ApprovalPagesOptions): Router {
  const { operations, launches, apps, trace, verdicts, clock, isFramed, render } = options;
  const router = Router();
  router.get('/approvals', async (req, res) => {
    const asked = typeof req.query['app'] === 'string' && apps.find(req.query['app']) ? req.query['app'] : null;
    const waiting = operations.countRequested(asked);
    const page = pageOf({ page: req.query['waiting'] }, waiting, pendingPerPage);
    const decidedPage = pageOf(req.query, operations.count(asked) - waiting, decidedPerPage);
    const shown = operations.page(pendingPerPage, { isWaiting: true, skip: page.skip, appId: asked });
    // An operation that a link has chosen stays, even if it waits no more: nobody must decide on another one by mistake.
    const linked = typeof req.query['op'] === 'string' ? operations.find(req.query['op']) : null;
    const chosen = linked ?? shown[0] ?? null;
    if (chosen) await verdicts.read([chosen.launchId]);
    const decidedId = req.query['decided'];
    const last = typeof decidedId === 'string' ? operations.find(decidedId) : null;
    const isDecided = last?.status === 'APPROVED' || last?.status === 'REJECTED';
    const decided = operations
      .page(decidedPerPage, { isWaiting: false, skip: decidedPage.skip, appId: asked })
      .map((operation) => viewOperation(operation, options));
    render(res, 'approvals', {
      pending: shown.map((operation) => viewOperation(operation, options)),
      chosen: chosen && {
        ...viewOperation(chosen, options),
        ...(await viewRequest(chosen, options)),
        ...appOf(chosen),
      },
      justDecided: last && isDecided ? { ...viewOperation(last, options), isFramed: isFramed(last.launchId) } : null,
      page,
      decided,
      decidedPage,
      apps: apps.list(),
      asked,
      late: Number(req.query['late'] ?? 0) || 0,
    });
  });

  /** Describes the app's behaviour so far, and whether it still waits. */
  function appOf({ id, launchId }: Operation) {
    const newest = trace.lastAboutAt(launchId, id);
    const isSilent = newest !== null && clock.machineNow() - newest > silentAfterMs;
    return {
      lastCallAt: newest === null ? null : iso(newest),
      isSilent,
      verdict: verdicts.of(launchId).verdict.result,
      isRevoked: launches.get(launchId).revokedAtMs !== null,
    };
  }

  for (const [name, status] of [
    ['approve', 'APPROVED'],
    ['reject', 'REJECTED'],
  ] as const) {
    router.post(`/approvals/:operationId/${name}`, (req, res) => {
      const isOfInspector = req.query['from'] === 'inspector';
      const { id, launchId } = operations.decide(
        req.params['operationId'],
        status,
        isOfInspector
          ? 'the inspector'
          : req.query['from'] === 'frame'
            ? 'the panel beside the app'
            : 'the approvals page',
      );
      res.redirect(303, isOfInspector ? `/launches/${launchId}` : `/approvals?decided=${id}`);
    });
    router.post(`/approvals/${name}`, form, (req, res) => {
      // Forms have texts, and lists of texts.
      const { id } = fieldsOf(req) as { id?: string | string[] };
      let late = 0;
      for (const operationId of [id ?? []].flat().slice(0, maxAtOnce)) {
        try {
          operations.decide(operationId, status, 'the approvals page');
        } catch (error) {
          // It was decided, or has expired, since the page was drawn.
          if (!(error instanceof SandboxError)) throw error;
          late += 1;
        }
      }
      res.redirect(303, late === 0 ? '/approvals' : `/approvals?late=${late}`);
    });
  }
  return router;
}

/** An operation as a person reads it. */
export function viewOperation(
  operation: Operation,
  { launches, apps, users, clock }: Omit<ApprovalOptions, 'operations' | 'render'>,
) {
  const launch = launches.get(operation.launchId);
  const user = users.find(launch.userId);
  return {
    id: operation.id,
    launchId: launch.id,
    status: operation.status,
    name: operation.name,
    description: operation.description,
    app: apps.find(launch.appId)?.name ?? launch.appId,
    user: user ? `${user.name}${user.organization ? `, ${user.organization}` : ''}` : launch.userId,
    decidedBy: operation.decidedBy,
    createdAt: iso(operation.createdAtMs),
    updatedAt: iso(operation.updatedAtMs),
    minutesLeft: Math.max(0, Math.ceil((operation.expiresAtMs - clock.now(launch.id)) / 60_000)),
  };
}

/** Returns the items that an operation names, with their places and bytes as far as known, and all other parameters in words. */
export async function viewRequest(
  { parameters }: Operation,
  { catalog, sources }: Pick<ApprovalPagesOptions, 'catalog' | 'sources'>,
) {
  const named: { collectionId: string; itemId: string }[] = [];
  // Wherever an app names items of the catalog.
  const others = flatten(parameters, '', ({ collectionId, itemId }) => {
    if (typeof collectionId !== 'string' || typeof itemId !== 'string') return false;
    named.push({ collectionId, itemId });
    return true;
  });
  const items = named
    .slice(0, maxItems)
    .flatMap(({ collectionId, itemId }) => catalog.items.find(collectionId, itemId) ?? []);
  const sizes = await Promise.all(items.map((item) => sources.sizeOf(item)));
  const lines = others.filter(({ path, text }) => !(path === 'input.type' && text === 'platform'));
  const rest = lines.length > maxLines ? [{ path: 'And', text: `${lines.length - maxLines} more` }] : [];
  return {
    items: items.map((item) => viewItem(item)),
    itemCount: named.length,
    volume: sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0),
    parameters: [...lines.slice(0, maxLines).map(({ path, text }) => ({ path: wordsOf(path), text })), ...rest],
  };
}

/** `sunAzimuth` and `sun_azimuth` as `Sun azimuth`, `bandA` as `Band A`. */
function wordsOf(path: string): string {
  const words = path
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .replace(/\./g, ', ')
    .trim()
    .replace(/[A-Z](?=[a-z])/g, (letter) => letter.toLowerCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
