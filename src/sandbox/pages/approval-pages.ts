import { Router } from 'express';
import { iso } from '../clock.ts';
import type { SandboxClock } from '../clock.ts';
import type { Operation, Operations } from '../external-app/operations.ts';
import type { Users } from '../identity/users.ts';
import type { Apps } from '../marketplace/apps.ts';
import type { Launches } from '../marketplace/launches.ts';
import type { RenderPage } from './page.ts';

/** The newest: an approver decides on some, and sees the next. */
const mostPending = 50;
const mostInHistory = 100;

export interface ApprovalOptions {
  readonly operations: Operations;
  readonly launches: Launches;
  readonly apps: Apps;
  readonly users: Users;
  readonly clock: SandboxClock;
  readonly render: RenderPage;
}

/** `/approvals`: what waits for the user, and what was decided. */
export function approvalPages(options: ApprovalOptions): Router {
  const { operations, render } = options;
  const router = Router();
  router.get('/approvals', (_req, res) => {
    const newest = (limit: number, isWaiting: boolean) => operations.newest(limit, { isWaiting }).map((operation) => viewOperation(operation, options));
    const pending = newest(mostPending, true);
    const more = pending.length < mostPending ? 0 : operations.countRequested() - pending.length;
    render(res, 'approvals', { pending, more, decided: newest(mostInHistory, false) });
  });
  for (const [name, status] of [['approve', 'APPROVED'], ['reject', 'REJECTED']] as const) {
    router.post(`/approvals/:operationId/${name}`, (req, res) => {
      const { launchId } = operations.decide(String(req.params['operationId']), status);
      const isOfInspector = req.query['from'] === 'inspector';
      res.redirect(303, isOfInspector ? `/launches/${launchId}` : '/approvals');
    });
  }
  return router;
}

/** An operation as a person reads it. */
export function viewOperation(operation: Operation, { launches, apps, users, clock }: Omit<ApprovalOptions, 'operations' | 'render'>) {
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
    parameters: flatten(operation.parameters),
    createdAt: iso(operation.createdAtMs),
    updatedAt: iso(operation.updatedAtMs),
    minutesLeft: Math.max(0, Math.ceil((operation.expiresAtMs - clock.now(launch.id)) / 60_000)),
  };
}

/** Nested values as lines of path and text. */
export function flatten(value: unknown, path = ''): { path: string; text: string }[] {
  if (value === null || typeof value !== 'object') return path === '' ? [] : [{ path, text: String(value) }];
  return Object.entries(value).flatMap(([name, inner]) => flatten(inner, path === '' ? name : `${path}.${name}`));
}
