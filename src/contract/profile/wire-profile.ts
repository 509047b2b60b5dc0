import * as z from 'zod';
import { platformErrors, validationDetail, type ErrorCode, type ValidationDetail } from '../error-codes.ts';
import { hasKey } from '../keys.ts';
import { calls, type ProfileCalls } from '../calls.ts';
import type { CompletionField } from '../files/completion-fields.ts';
import { collectionOfUploads } from '../file.ts';
import type { WireChanges } from './wire-changes.ts';
import { assumedLimits, type WireLimits } from './wire-limits.ts';

/** An error answer, in the kit's words. `code` is null where the platform's is not known. */
export interface WireError {
  readonly code: ErrorCode | null;
  readonly message: string | null;
  readonly requestId: string | null;
  readonly details: readonly ValidationDetail[];
  /** The part that the platform wants next, where it said so. */
  readonly expectedPart: number | null;
}

/**
 * Everything the app knows of the platform's wire: paths, field names, body encodings, error shapes.
 * The app speaks to the platform through a profile only, so an integrator who gets the real document
 * writes it here and touches nothing else.
 */
export interface WireProfile {
  readonly name: string;
  /** Headers that carry the API key (spec 5). */
  authenticate(apiKey: string): Record<string, string>;
  readonly calls: ProfileCalls;
  decodeError(status: number, body: unknown): WireError;
  /** Query parameter or form field in which a launch hands over the identity token. */
  readonly launchTokenField: string;
  /** Platform pages to which the app's pages send the user, below the platform's address. Null if there is no such page. */
  readonly pages: {
    readonly approvals: string | null;
    readonly item: ((collectionId: string, itemId: string) => string) | null;
    /** A page about a request, by its id in an error. Default: none. */
    readonly request?: ((requestId: string) => string) | null;
  };
  readonly limits: WireLimits;
  /** Delivery of several outputs of a run: one upload for each, or one zip for all. */
  readonly severalOutputs: 'uploads' | 'zip';
  /** Optional fields of a completion (spec 4.4) that the platform refuses: the app leaves them out. */
  readonly refusedFields: readonly CompletionField[];
  /** The collection in which the items of a user's uploads are. */
  uploadsCollection(userId: string): string;
  /** Data that the profile was made from, for a sandbox that speaks it. Null if the profile is code alone. */
  readonly changes: WireChanges | null;
}

/** The API key's header (spec 5); header names are case-insensitive. */
export const apiKeyHeader = 'X-API-KEY';
// @assumed launch-token-field. The next lines are as in 0.1.0: a fork that has changed them merges.
/** @assumed how a launch hands over the token (spec 6 shows no mechanism) */
export const launchTokenField = 'token';

/** @assumed platform-pages: for people (the spec describes none): where operations are approved, and where an item and a request are shown */
export const platformPages: WireProfile['pages'] = {
  approvals: '/approvals',
  item: (collectionId, itemId) => `/catalog/${encodeURIComponent(collectionId)}/${encodeURIComponent(itemId)}`,
  request: (requestId) => `/requests/${encodeURIComponent(requestId)}`,
};

/** @assumed several-uploads: an approved operation takes several uploads: spec 4.8 shows one */
const severalOutputs = 'uploads';

const lenientError = z.object({
  error: z.string().nullish().catch(null),
  code: z.string().nullish().catch(null),
  requestId: z.string().nullish().catch(null),
  details: z.array(validationDetail).nullish().catch(null),
  expected: z.int().nullish().catch(null),
});

/** The wire as `contract` assumes it. */
export const assumedProfile: WireProfile = {
  name: 'assumed',
  authenticate: (apiKey) => ({ [apiKeyHeader]: apiKey }),
  calls,
  decodeError(_status, body) {
    const read = lenientError.safeParse(body);
    const error = read.success ? read.data : {};
    return {
      code: error.code != null && hasKey(platformErrors, error.code) ? error.code : null,
      message: error.error ?? null,
      requestId: error.requestId ?? null,
      details: error.details ?? [],
      expectedPart: error.expected ?? null,
    };
  },
  launchTokenField,
  pages: platformPages,
  limits: assumedLimits,
  severalOutputs,
  refusedFields: [],
  uploadsCollection: collectionOfUploads,
  changes: { name: 'assumed' },
};
