import * as z from 'zod';
import { endpoints, endpointsWhere, type Endpoint } from '../../contract/index.ts';

const status = z.int().min(400).max(599);
const effect = z.union(
  [
    z.strictObject({ status, afterWork: z.literal(true) }),
    z.strictObject({ status, retryAfterSeconds: z.int().min(0).max(86_400).optional() }),
    z.strictObject({ delayMs: z.int().min(0).max(600_000) }),
    z.strictObject({ reset: z.literal(true) }),
    z.strictObject({ dropResponse: z.literal(true) }),
    z.strictObject({ truncate: z.literal(true) }),
    z.strictObject({ contentType: z.string().regex(/^[\w.+-]{1,60}\/[\w.+-]{1,60}$/) }),
    z.strictObject({ slowBodyMs: z.int().min(0).max(600_000) }),
    z.strictObject({ failWork: z.literal(true) }),
  ],
  'must be one of {status, retryAfterSeconds?}, {status, afterWork: true}, {delayMs}, {reset: true}, {dropResponse: true}, {truncate: true}, {contentType: "text/html"}, {slowBodyMs}, {failWork: true} (of a completion)',
);
export type FaultEffect = z.output<typeof effect>;

export const faultFields = z.strictObject({
  launchId: z.string().optional(),
  endpoint: z.enum(endpoints, `must be one of ${endpoints.join(', ')}`),
  after: z.int().min(0).default(0),
  times: z.int().min(1).default(1),
  effect,
});

/** Body of `POST /sandbox/faults`. */
export const newFault = faultFields
  .refine(({ launchId, endpoint }) => launchId === undefined || ofLaunch.has(endpoint), {
    path: ['launchId'],
    error: 'must be left out: only calls of the external-app group belong to a launch',
  })
  .refine(({ endpoint, effect }) => !('failWork' in effect) || completions.has(endpoint), {
    path: ['effect'],
    error: 'must be another: only a completion fails in its work',
  });
/** Calls whose work can fail half-way. */
const completions = endpointsWhere(({ canFailInWork }) => canFailInWork === true);
/** Calls that carry an identity token. */
const ofLaunch = endpointsWhere(({ group }) => group === 'External app');

export interface Fault {
  readonly id: string;
  readonly launchId: string | null;
  readonly endpoint: Endpoint;
  /** Matching calls let through first. */
  readonly after: number;
  readonly times: number;
  readonly effect: FaultEffect;
  readonly fired: number;
}

/** Describes an effect in words. */
export function faultText(effect: FaultEffect): string {
  if ('afterWork' in effect) return `do the work, answer ${effect.status}`;
  if ('status' in effect)
    return `answer ${effect.status}${effect.retryAfterSeconds === undefined ? '' : `, Retry-After ${effect.retryAfterSeconds}`}`;
  if ('delayMs' in effect) return `slow by ${effect.delayMs / 1000} s`;
  if ('slowBodyMs' in effect) return `half of the answer late by ${effect.slowBodyMs / 1000} s`;
  if ('contentType' in effect) return `say that the answer is ${effect.contentType}`;
  if ('truncate' in effect) return 'half of the answer';
  if ('failWork' in effect) return 'fail in the middle of the work, and clean up';
  return 'reset' in effect ? 'cut the connection' : 'do the work, lose the answer';
}
