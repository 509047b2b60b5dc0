import * as z from 'zod';
import { keysOf } from './keys.ts';

/** The people who can fix an error: the developer of the app, its user, the operator of app or sandbox, or the platform. */
export const fixedBy = ['app', 'user', 'operator', 'platform'] as const;

interface PlatformErrorRow {
  /** HTTP status of the answer, unless the cause says another. */
  readonly status: number;
  /** The answer's `error`, unless it names a value. */
  readonly message: string;
  readonly fixedBy: (typeof fixedBy)[number];
  /** One sentence. */
  readonly cause: string;
}

/**
 * Stable error codes of the platform. The spec shows statuses and some messages but no body shape (section 7), so the
 * body and these codes are the kit's. docs/reference/errors.md is made from this table.
 * @assumed error-body
 */
export const platformErrors = {
  validation_failed: { status: 400, message: 'Bad Request', fixedBy: 'app', cause: 'A value is missing, malformed or invalid; `details` names it.' },
  malformed_json: { status: 400, message: 'Bad Request', fixedBy: 'app', cause: 'The body is not JSON.' },
  malformed_form: { status: 400, message: 'Bad Request', fixedBy: 'app', cause: 'The form cannot be read, or a field comes twice.' },
  unsupported_media_type: { status: 415, message: 'Unsupported Media Type', fixedBy: 'app', cause: 'The body has another content type than the call takes.' },
  body_too_large: { status: 400, message: 'Bad Request', fixedBy: 'app', cause: 'The body is larger than the call takes.' },
  path_not_found: { status: 404, message: 'Not Found', fixedBy: 'app', cause: 'The platform has no such path.' },
  method_not_allowed: { status: 405, message: 'Method Not Allowed', fixedBy: 'app', cause: 'The path has no such method; `Allow` lists those that it has.' },
  unauthorized: { status: 401, message: 'Unauthorized Request', fixedBy: 'operator', cause: 'The API key of a catalog, file or inference call is missing or unknown.' },
  authentication_failed: { status: 403, message: 'Authentication failed', fixedBy: 'operator', cause: 'The API key of an external-app call is missing or unknown.' },
  permission_denied: { status: 403, message: 'Permission Denied', fixedBy: 'operator', cause: 'The API key lacks the permission that the call needs.' },
  token_not_found: { status: 404, message: 'Token not found', fixedBy: 'user', cause: 'The platform does not know the identity token.' },
  token_revoked: { status: 403, message: 'Token revoked', fixedBy: 'user', cause: 'The identity token was revoked, or replaced by its successor.' },
  token_expired: { status: 403, message: 'Token expired', fixedBy: 'user', cause: 'The identity token has expired.' },
  operation_not_found: { status: 404, message: 'Operation not found', fixedBy: 'app', cause: 'The launch has no such operation.' },
  operation_not_approved: { status: 400, message: 'Operation is not APPROVED', fixedBy: 'app', cause: 'An upload call came while the operation was not APPROVED.' },
  operation_not_requested: { status: 409, message: 'Operation is not REQUESTED', fixedBy: 'user', cause: 'The operation was decided before, or has expired.' },
  idempotency_key_reused: { status: 400, message: 'Idempotency-Key was used with another body', fixedBy: 'app', cause: 'An `Idempotency-Key` came again with another body.' },
  upload_session_not_found: { status: 404, message: 'Upload session not found', fixedBy: 'app', cause: 'The upload session is unknown, belongs to another launch, has another `key`, or has ended.' },
  chunk_out_of_order: { status: 400, message: 'Another chunk is next', fixedBy: 'app', cause: 'The part number is not the next one; `expected` names it.' },
  chunk_conflict: { status: 400, message: 'The chunk was uploaded with other bytes', fixedBy: 'app', cause: 'A part came again with other bytes.' },
  chunk_too_large: { status: 400, message: 'The chunk is too large', fixedBy: 'app', cause: 'A chunk has more than 512 MiB (413 in the file group).' },
  upload_incomplete: { status: 400, message: 'A chunk is missing', fixedBy: 'app', cause: 'A part is missing at `complete`.' },
  upload_completed: { status: 400, message: 'Upload is completed', fixedBy: 'app', cause: 'A chunk came after `complete`.' },
  size_mismatch: { status: 400, message: 'fileSize differs from the bytes received', fixedBy: 'app', cause: '`fileSize` differs from the bytes that came.' },
  insufficient_storage: { status: 500, message: 'Internal Server Error', fixedBy: 'platform', cause: 'The platform has no space left (507 in the file group).' },
  file_not_found: { status: 404, message: 'File not found', fixedBy: 'app', cause: 'The platform has no such file.' },
  file_too_large: { status: 413, message: 'File is too large', fixedBy: 'app', cause: 'A file of a single request has more than 100 MB.' },
  catalog_not_found: { status: 404, message: 'Catalog not found', fixedBy: 'app', cause: 'The platform has no such catalog.' },
  collection_not_found: { status: 404, message: 'Collection not found', fixedBy: 'app', cause: 'The platform has no such collection.' },
  item_not_found: { status: 404, message: 'Item not found', fixedBy: 'app', cause: 'The collection has no such item.' },
  asset_not_available: { status: 404, message: 'The source file no longer exists', fixedBy: 'platform', cause: 'The item has no data any more, or no such band.' },
  model_not_found: { status: 404, message: 'Model not found', fixedBy: 'app', cause: 'The platform has no such model.' },
  model_not_active: { status: 400, message: 'Model is not active', fixedBy: 'operator', cause: 'The model is not active.' },
  inference_job_not_found: { status: 404, message: 'Inference Job not found', fixedBy: 'app', cause: 'The platform has no such inference job, or it has no such result.' },
  inference_job_not_done: { status: 400, message: 'Inference Job is not DONE', fixedBy: 'app', cause: 'A result was asked for before the job is DONE.' },
  inference_unavailable: { status: 500, message: 'Inference is not available', fixedBy: 'operator', cause: 'The sandbox cannot run models on this machine.' },
  link_invalid: { status: 403, message: 'Link is not valid', fixedBy: 'app', cause: 'The signature of a link does not match.' },
  link_expired: { status: 403, message: 'Link has expired', fixedBy: 'app', cause: 'A link has expired; ask for a fresh one.' },
  app_not_found: { status: 404, message: 'App not found', fixedBy: 'operator', cause: 'The marketplace has no such app.' },
  user_not_found: { status: 404, message: 'User not found', fixedBy: 'operator', cause: 'The marketplace has no such user.' },
  key_not_found: { status: 404, message: 'Key not found', fixedBy: 'operator', cause: 'The sandbox has no such API key.' },
  request_not_found: { status: 404, message: 'Request not found', fixedBy: 'operator', cause: 'The sandbox has recorded no call of a launch with this request id.' },
  launch_not_found: { status: 404, message: 'Launch not found', fixedBy: 'operator', cause: 'The sandbox has no such launch.' },
  misdirected_request: { status: 421, message: 'Misdirected Request', fixedBy: 'operator', cause: 'The `Host` header names another server.' },
  foreign_origin: { status: 403, message: 'Request from another origin', fixedBy: 'operator', cause: 'A page of another origin sent the request.' },
  loopback_only: { status: 403, message: 'Set SANDBOX_ADMIN_KEY to control the sandbox from another machine', fixedBy: 'operator', cause: 'A control call came from another machine or through a proxy, and `SANDBOX_ADMIN_KEY` is not set.' },
  admin_key_required: { status: 401, message: 'X-ADMIN-KEY is required', fixedBy: 'operator', cause: 'A control call lacks `X-ADMIN-KEY`.' },
  busy: { status: 503, message: 'The sandbox is busy; try again in a moment', fixedBy: 'platform', cause: 'Too many requests of this kind are under way; try again.' },
  search_timeout: { status: 503, message: 'The search took too long', fixedBy: 'user', cause: 'A search took longer than its limit; ask for less.' },
  too_many_requests: { status: 429, message: 'Too Many Requests', fixedBy: 'app', cause: 'The rate limit is reached; `Retry-After` says how long to wait.' },
  injected_fault: { status: 400, message: 'Injected fault', fixedBy: 'app', cause: 'A fault was armed in the sandbox.' },
  internal_error: { status: 500, message: 'Internal Server Error', fixedBy: 'platform', cause: 'The platform failed.' },
} as const satisfies Readonly<Record<string, PlatformErrorRow>>; // oxfmt-ignore

/** A code of the platform's errors. `docs/reference/errors.md` lists them. */
export type ErrorCode = keyof typeof platformErrors;
/** The platform's error codes, each with status, message, cause and the person who can fix it. */
export const errorCodes = keysOf(platformErrors);

export const validationDetail = z.object({
  /** Dotted path of the value: `sortby.0.field`. Empty for the body as a whole. */
  path: z.string(),
  message: z.string(),
});
/** A wrong value of a request, and the reason (spec 7). */
export type ValidationDetail = z.infer<typeof validationDetail>;

/** The error body that the sandbox sends. */
export const errorBody = z.object({
  error: z.string(),
  code: z.enum(errorCodes),
  requestId: z.string(),
  details: z.array(validationDetail).optional(),
  /** `chunk_out_of_order` only: the part number that is next. */
  expected: z.int().optional(),
  /** `chunk_out_of_order` only: the part number that came. */
  received: z.int().optional(),
});
/** The body of an error response (spec 7). */
export type ErrorBody = z.infer<typeof errorBody>;

/** Number of wrong values that an answer lists: a body of a megabyte may have a hundred thousand. */
const maxDetails = 50;

/** Zod's issues as the contract's `details`, the first 50 of them. */
export function validationDetails(error: z.ZodError): ValidationDetail[] {
  const details: ValidationDetail[] = [];
  let count = 0;
  for (const issue of error.issues) {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : [null];
    count += keys.length;
    for (const key of keys.slice(0, maxDetails - details.length))
      details.push(
        key === null
          ? { path: issue.path.join('.'), message: issue.message }
          : { path: [...issue.path, key.slice(0, 100)].join('.'), message: 'is not known here' },
      );
  }
  return withCount(details, count);
}

/** Details, and a last one that says how many more there are. */
export function withCount(details: readonly ValidationDetail[], count: number): ValidationDetail[] {
  const listed = details.slice(0, maxDetails);
  return count > listed.length
    ? [...listed, { path: '', message: `and ${count - listed.length} more values are wrong` }]
    : listed;
}
